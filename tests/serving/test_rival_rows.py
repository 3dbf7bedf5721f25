"""The rows on which the strongest rival is wrong, one test each: docs/side-by-side.md lists them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.protocols import apis
from tests.serving.asks import PATHS, TOOLS, ask
from tests.serving.server import Server
from tests.serving.waits import until

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
DISPATCH = {"x-treadle-dispatch": "events"}


def said(*blocks: dict[str, Any], role: str = "user") -> dict[str, Any]:
    return {"role": role, "content": list(blocks)}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


async def send(server: Server, api: str, headers: Any = None, **fields: Any) -> Any:
    answer = await server.http.post(PATHS[api], json=ask(api, **fields), headers=headers)
    assert answer.status_code == 200, answer.text
    return apis.parse(answer.content) if fields.get("stream") else answer.json()


def prompt(server: Server) -> str:
    """The prompt that the engine was given last."""
    return server.ingress.models[0].folder.tokenizer.decode(server.engine.jobs[-1].prompt)


CALL = {"type": "tool_use", "id": "t1", "name": "forecast", "input": {"place": "X"}}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": [text("boom"), text("two")]}
LOOP = [said(text("go")), said(CALL, role="assistant"), said(RESULT)]
SEEN = {  # messages that must be served, and what the model must see of them
    "text blocks of a user": ([said(text("one"), text("two"))], "one\n"),
    "a document of text": (
        [
            said(
                {
                    "type": "document",
                    "source": {"type": "text", "media_type": "text/plain", "data": "D1"},
                }
            )
        ],
        "D1",
    ),
    "a search result": (
        [said({"type": "search_result", "title": "T", "source": "u", "content": [text("S1")]})],
        "S1",
    ),
    "text blocks of a result": (LOOP, "boom\n"),
    "a tool reference": (
        [
            *LOOP[:2],
            said(RESULT | {"content": [{"type": "tool_reference", "tool_name": "forecast"}]}),
        ],
        "forecast",
    ),
    "thinking without a signature": (
        [LOOP[0], said({"type": "thinking", "thinking": "T1"}, CALL, role="assistant"), LOOP[2]],
        "T1",
    ),
    "a server's tool in the history": (
        [
            LOOP[0],
            said(
                {
                    "type": "server_tool_use",
                    "id": "s1",
                    "name": "web_search",
                    "input": {"query": "q"},
                },
                {
                    "type": "web_search_tool_result",
                    "tool_use_id": "s1",
                    "content": [{"type": "web_search_result", "title": "W1", "url": "u"}],
                },
                text("so"),
                role="assistant",
            ),
            said(text("and?")),
        ],
        "W1",
    ),
    "a late system message": (
        [
            LOOP[0],
            said(text("ok"), role="assistant"),
            {"role": "system", "content": "LATE"},
            said(text("?")),
        ],
        "LATE",
    ),
}


@pytest.mark.parametrize(("messages", "shown"), SEEN.values(), ids=SEEN.keys())
async def test_history_that_is_refused_elsewhere_is_seen(
    server: Server, messages: list[Any], shown: str
) -> None:
    await send(server, "messages", messages=messages, tools=TOOLS["messages"])
    assert shown in prompt(server)


async def test_an_image_by_url_does_not_fail_the_decoder(server: Server) -> None:
    """A model without eyes says so; the request is understood."""
    for source in (
        {"type": "url", "url": "http://x/y.png"},
        {"type": "base64", "media_type": "image/png", "data": PIXEL},
    ):
        body = ask("messages", messages=[said({"type": "image", "source": source}, text("what?"))])
        answer = await server.http.post(PATHS["messages"], json=body)
        assert answer.status_code in (200, 400)
        if answer.status_code == 400:
            assert "image" in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    "kind",
    ["web_search_20250305", "bash_20250124", "text_editor_20250728", "code_execution_20250522"],
)
async def test_no_type_of_tool_fails_the_request(server: Server, kind: str) -> None:
    await send(server, "messages", tools=[{"type": kind, "name": "t"}, *TOOLS["messages"]])
    assert "forecast" in prompt(server)


async def test_text_keeps_its_place_between_calls(server: Server) -> None:
    second = CALL | {"id": "t2", "input": {"place": "SECOND"}}
    history = said(text("T0"), CALL, text("T1"), second, role="assistant")
    results = said(RESULT, RESULT | {"tool_use_id": "t2"})
    await send(server, "messages", messages=[LOOP[0], history, results], tools=TOOLS["messages"])
    seen = prompt(server)
    assert seen.index("T0") < seen.index('"X"') < seen.index("T1") < seen.index("SECOND")


async def test_an_error_of_a_tool_is_marked(server: Server) -> None:
    for wrong in (True, False):
        result = said(RESULT | {"is_error": wrong})
        await send(server, "messages", messages=[*LOOP[:2], result], tools=TOOLS["messages"])
    marked, plain = (len(job.prompt) for job in server.engine.jobs)
    assert marked > plain


async def test_thinking_disabled_is_off_and_a_budget_is_a_limit(server: Server) -> None:
    server.says({"think": "word " * 200}, {"text": "Done."})
    off = await send(server, "messages", thinking={"type": "disabled"})
    assert [block["type"] for block in off["content"]] == ["text"]
    assert prompt(server).endswith("<think>\n\n</think>\n\n")
    some = await send(server, "messages", thinking={"type": "enabled", "budget_tokens": 20})
    thought = some["content"][0]["thinking"].split()
    assert 0 < len(thought) <= 20
    assert some["content"][0]["signature"]


async def test_a_prefill_is_gone_on_from(server: Server) -> None:
    await send(
        server, "messages", messages=[LOOP[0], said(text("The answer is"), role="assistant")]
    )
    assert prompt(server).endswith("The answer is")


async def test_a_stop_sequence_is_named(server: Server) -> None:
    server.says({"text": "one STOP two"})
    whole = await send(server, "messages", stop_sequences=["STOP"])
    assert (whole["stop_reason"], whole["stop_sequence"]) == ("stop_sequence", "STOP")
    assert whole["content"] == [{"type": "text", "text": "one "}]


@pytest.mark.parametrize("api", PATHS)
async def test_at_most_one_call_where_one_is_asked_for(server: Server, api: str) -> None:
    server.says({"call": {"tool": "forecast"}}, {"call": {"tool": "forecast"}}, {"text": "more"})
    one: dict[str, Any] = {"parallel_tool_calls": False}
    if api == "messages":
        one = {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}}
    for fields, calls in (({}, 2), (one, 1)):
        whole = json.dumps(await send(server, api, tools=TOOLS[api], **fields))
        assert whole.count('"forecast"') == calls + (api == "responses")  # its tools are echoed
    await until(lambda: not server.replica.inner.open_turns)
    assert len(server.conductor) == 0


THINK_AND_CALL = [
    {"think": "first"},
    {"call": {"tool": "forecast", "arguments": {"place": "A"}}},
    {"think": "second"},
    {"call": {"tool": "forecast", "arguments": {"place": "B"}}},
]


async def test_interleaving_survives_on_messages(server: Server) -> None:
    server.says(*THINK_AND_CALL)
    events = await send(server, "messages", stream=True, tools=TOOLS["messages"])
    starts = [d for _, d in events if d["type"] == "content_block_start"]
    kinds = [start["content_block"]["type"] for start in starts]
    assert kinds == ["thinking", "tool_use", "thinking", "tool_use"]
    assert [start["index"] for start in starts] == [0, 1, 2, 3]
    whole = await send(server, "messages", tools=TOOLS["messages"])
    assert [block["type"] for block in whole["content"]] == kinds
    assert [b["thinking"] for b in whole["content"] if b["type"] == "thinking"] == [
        "first",
        "second",
    ]


async def test_interleaving_survives_on_responses(server: Server) -> None:
    """The rival cut the second span of reasoning after two characters."""
    server.says(*THINK_AND_CALL)
    whole = await send(server, "responses", tools=TOOLS["responses"])
    kinds = [item["type"] for item in whole["output"]]
    assert kinds == ["reasoning", "function_call", "reasoning", "function_call"]
    spans = [item["content"][0]["text"] for item in whole["output"] if item["type"] == "reasoning"]
    assert spans == ["first", "second"]


async def test_a_stream_of_messages_has_nothing_of_another_protocol(server: Server) -> None:
    answer = await server.http.post(PATHS["messages"], json=ask("messages", stream=True))
    assert b"[DONE]" not in answer.content
    deltas = [d for _, d in apis.parse(answer.content) if d["type"] == "content_block_delta"]
    assert deltas
    assert not [delta for delta in deltas if "usage" in delta]


@pytest.mark.parametrize("api", PATHS)
async def test_a_call_is_seen_while_it_is_made(server: Server, api: str) -> None:
    """The rival holds tool blocks, and all behind them, until the end of the turn."""
    call = {"tool": "forecast", "arguments": {"place": "word " * 60}}
    server.says({"call": call}, {"text": "Epilogue. " * 200}, tokens={"step_ms": 5})
    body = ask(api, stream=True, tools=TOOLS[api])
    async with server.http.stream("POST", PATHS[api], json=body) as answer:
        seen = b""
        async for piece in answer.aiter_raw():
            seen += piece
            if seen.count(b"word") >= 3:
                break
        assert server.engine.stats().running == 1
        assert b"pilogue" not in seen


@pytest.mark.parametrize("api", PATHS)
async def test_a_dispatch_is_whole_on_every_api(server: Server, api: str) -> None:
    """Also where a call is required, and for calls that came in one piece."""
    server.says({"call": {"tool": "forecast", "arguments": {"place": "A", "days": 2}}})
    required = (
        {"tool_choice": {"type": "any"}} if api == "messages" else {"tool_choice": "required"}
    )
    for fields in ({}, required):
        events = await send(server, api, DISPATCH, stream=True, tools=TOOLS[api], **fields)
        (sent,) = [data for name, data in events if name == "tool_call_dispatch"]
        arguments = json.loads(sent["tool_call"]["function"]["arguments"])
        assert arguments == {"place": "A", "days": 2}


@pytest.mark.parametrize("api", PATHS)
async def test_no_dispatch_for_a_call_that_is_cut(server: Server, api: str) -> None:
    server.says({"call": {"tool": "forecast", "arguments": {"place": "word " * 100}}})
    limit = {"responses": "max_output_tokens", "chat": "max_tokens", "messages": "max_tokens"}[api]
    fields = {"stream": True, "tools": TOOLS[api], limit: 30}
    events = await send(server, api, DISPATCH, **fields)
    assert not [name for name, _ in events if name == "tool_call_dispatch"]


async def test_each_span_of_reasoning_is_dispatched_before_its_call(server: Server) -> None:
    server.says(*THINK_AND_CALL)
    events = await send(server, "chat", DISPATCH, stream=True, tools=TOOLS["chat"])
    order = [(name, data) for name, data in events if name and name.endswith("_dispatch")]
    assert [name for name, _ in order] == ["reasoning_dispatch", "tool_call_dispatch"] * 2
    spans = [data["reasoning_content"] for name, data in order if name == "reasoning_dispatch"]
    assert spans == ["first", "second"]


CODEX = [
    {"type": "custom", "name": "apply_patch", "format": {"type": "text"}},
    {"type": "web_search"},
    {"type": "local_shell"},
    {"type": "tool_search", "execution": "client", "parameters": {"type": "object"}},
    {"type": "image_generation"},
]
ITEMS = [
    {"type": "custom_tool_call", "call_id": "c1", "name": "apply_patch", "input": "PATCH"},
    {"type": "custom_tool_call_output", "call_id": "c1", "output": "PATCHED"},
    {
        "type": "local_shell_call",
        "call_id": "c2",
        "status": "completed",
        "action": {"type": "exec", "command": ["ls"], "env": {}},
    },
    {"type": "local_shell_call_output", "call_id": "c2", "output": "LISTED"},
    {"type": "web_search_call", "id": "w1", "status": "completed"},
    {"type": "item_reference", "id": "x"},
    {"type": "compaction", "encrypted_content": "foreign"},
]


async def test_what_codex_sends_is_served_and_nothing_vanishes_silently(server: Server) -> None:
    body = ask("responses", tools=CODEX, input=[{"role": "user", "content": "go"}, *ITEMS])
    answer = await server.http.post(PATHS["responses"], json=body)
    assert answer.status_code == 200
    shown = prompt(server)
    assert all(word in shown for word in ("PATCH", "PATCHED", "LISTED", "local_shell"))
    said = answer.headers["x-treadle-ignored"]
    for name in ("web_search", "image_generation", "item_reference", "compaction"):
        assert name in said


async def test_encrypted_reasoning_is_made_when_asked_for(server: Server) -> None:
    server.says({"think": "Hm."}, {"text": "Rain."})
    fields = {"include": ["reasoning.encrypted_content"]}
    whole = await send(server, "responses", **fields)
    assert whole["output"][0]["encrypted_content"]
    plain = await send(server, "responses")
    assert plain["output"][0]["type"] == "reasoning"  # never billed and hidden
    assert "encrypted_content" not in plain["output"][0]
    kept_nowhere = await send(server, "responses", store=False)
    assert kept_nowhere["output"][0]["encrypted_content"]


async def test_an_error_has_the_id_of_its_request(server: Server) -> None:
    headers = {"anthropic-version": "2023-06-01"}
    missing = await server.http.get("/v1/models/nope", headers=headers)
    assert missing.json()["type"] == "error"
    wrong = await server.http.post(PATHS["messages"], json={})
    assert wrong.json()["request_id"] == wrong.headers["request-id"]

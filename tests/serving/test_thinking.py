"""What becomes of reasoning: asked for or not, switched off, too old, forgotten in a cold session."""

from __future__ import annotations

from typing import Any

import pytest

from sessions.memory_store import MemoryStore
from tests.serving.asks import PATHS, TOOLS, ask
from tests.serving.server import MODEL, Server, serving, settings
from tests.serving.sessions import Session

SAID: list[dict[str, Any]] = [{"think": "pondering  this"}, {"text": "It rains."}]
CALL = {"call": {"tool": "forecast", "arguments": {"place": "Bergen"}}}
NAMED = {"extra_headers": {"x-session-id": "s1"}}


def text(server: Server, n: int) -> str:
    """The prompt of a turn."""
    decode = server.ingress.models[0].folder.tokenizer.decode
    return str(decode(server.engine.jobs[n].prompt))


def goes_on(server: Server, n: int) -> bool:
    """Whether a prompt begins with the one before and what was generated."""
    last = server.engine.jobs[n - 1]
    whole = [*last.prompt, *server.engine.output[last.turn]]
    return server.engine.jobs[n].prompt[: len(whole)] == whole


def keeping(**prompt: Any) -> Any:
    return settings(model={"family": "qwen3_5", "prompt": prompt})


@pytest.mark.parametrize("api", PATHS)
async def test_a_cold_session_forgets_what_it_thought_and_stays_so(api: str) -> None:
    store = MemoryStore()
    cold = keeping(forget_after_idle_s=3600)
    async with serving(cold, store=store) as first, serving(cold, store=store) as second:
        now = 1000.0
        for server in (first, second):
            server.says(*SAID)
            server.ingress.replay._clock = lambda: now
        session = Session(first, api, stream=True, **NAMED)
        elsewhere = Session(second, api, stream=True, **NAMED)
        await session.turn()
        await session.turn()
        assert goes_on(first, 1)
        now += 4000
        first.says(*SAID[:1], CALL)
        await session.turn()
        assert "pondering" not in text(first, 2)
        assert not goes_on(first, 2)
        first.says(*SAID)
        await session.turn()
        assert goes_on(first, 3)  # of this turn's own tool loop nothing is forgotten
        elsewhere.body = session.body
        await elsewhere.turn()  # another ingress knows too
        assert text(second, 0).count("pondering") == 2
        now += 3000
        await session.turn()
        assert text(first, 4).startswith(text(first, 3))
        await session.close()
        await elsewhere.close()


async def test_counting_sees_the_cold_session_as_it_will_be_run() -> None:
    async with serving(keeping(forget_after_idle_s=60)) as server:
        server.says(*SAID)
        now = 0.0
        server.ingress.replay._clock = lambda: now
        session = Session(server, "messages", stream=False, **NAMED)
        await session.turn()
        now = 100.0
        body = {name: value for name, value in session.body.items() if name != "extra_headers"}
        headers = {"x-session-id": "s1", "authorization": "Bearer none"}
        counted = await server.http.post("/v1/messages/count_tokens", json=body, headers=headers)
        await session.turn()
        assert counted.json()["input_tokens"] == len(server.engine.jobs[1].prompt)
        await session.close()


async def test_without_the_setting_nothing_is_forgotten() -> None:
    async with serving(keeping()) as server:
        server.says(*SAID)
        now = 0.0
        server.ingress.replay._clock = lambda: now
        session = Session(server, "messages", stream=False, **NAMED)
        await session.turn()
        now = 1e6
        await session.turn()
        assert goes_on(server, 1)
        await session.close()


@pytest.mark.parametrize("api", PATHS)
async def test_thinking_older_than_the_last_replies_is_cleared(api: str) -> None:
    async with serving(keeping(keep_thinking_turns=1)) as server:
        session = Session(server, api, stream=True)
        for n in range(3):
            server.says({"think": f"thought {n}"}, CALL)
            await session.turn()
        assert "thought 0" not in text(server, 2)
        assert "thought 1" in text(server, 2)
        await session.close()


async def test_a_client_may_have_thinking_and_results_cleared() -> None:
    edits = [
        {"type": "clear_thinking_20251015", "keep": {"type": "thinking_turns", "value": 1}},
        {
            "type": "clear_tool_uses_20250919",
            "trigger": {"type": "tool_uses", "value": 1},
            "keep": {"type": "tool_uses", "value": 1},
        },
    ]
    async with serving(keeping()) as server:
        session = Session(
            server, "messages", stream=True, extra_body={"context_management": {"edits": edits}}
        )
        for n in range(3):
            server.says({"think": f"thought {n}"}, CALL)
            await session.turn()
        assert "thought 0" not in text(server, 2)
        assert "thought 1" in text(server, 2)
        assert text(server, 1).count("rain <think> and wind") == 1
        assert text(server, 2).count("rain <think> and wind") == 1
        assert "cleared to save context" in text(server, 2)
        await session.close()


@pytest.mark.parametrize("asked", [True, False])
@pytest.mark.parametrize("stream", [True, False])
async def test_thinking_blocks_go_to_those_who_asked(stream: bool, asked: bool) -> None:
    async with serving(keeping(unasked_thinking=False)) as server:
        server.says(*SAID, CALL)
        own: dict[str, Any] = {"max_tokens": 2000}
        session = Session(server, "messages", stream=stream, **own)
        if not asked:
            del session.body["thinking"]
        answer = await session.turn()
        kinds = [block.type for block in answer.content]
        assert kinds == ["thinking"] * asked + ["text", "tool_use"]
        await session.turn()
        assert goes_on(server, 1)  # the ledger has what the client was not shown
        await session.close()


AGENTIC = {"enable_thinking": True, "truncate_history_thinking": False}
OFF: dict[str, dict[str, Any]] = {
    "messages": {"thinking": {"type": "disabled"}},
    "responses": {"reasoning": {"effort": "none"}},
    "chat": {"reasoning_effort": "none"},
}


@pytest.mark.parametrize("api", PATHS)
async def test_an_agentic_turn_thinks_and_keeps_its_thoughts_unless_told_not_to(api: str) -> None:
    async with serving(settings(model={"family": "nemotron3"})) as server:
        for fields in ({}, OFF[api]):
            body = ask(api, tools=TOOLS[api], **fields)
            assert (await server.http.post(PATHS[api], json=body)).status_code == 200
        prompter = server.ingress.models[0].folder.prompter
        thinking, silent = (
            prompter.plan(job.conversation).arguments
            for job in server.engine.jobs
            if job.conversation
        )
        assert thinking == AGENTIC
        assert silent["enable_thinking"] is False
        assert text(server, 0).endswith("<think>\n")
        assert text(server, 1).endswith("<think></think>")


TEMPLATE = "{% for m in messages %}OWN {{ m.content }}{% endfor %}"


@pytest.mark.parametrize("source", [TEMPLATE, "{% for"])
async def test_a_template_of_the_clients_own_is_off_by_default(source: str) -> None:
    body = ask("chat", chat_template=source)
    async with serving() as server:
        refused = await server.http.post(PATHS["chat"], json=body)
        assert refused.status_code == 400
        assert "takes no chat template" in refused.json()["error"]["message"]
        assert not server.engine.jobs
    async with serving(settings(model={"prompt": {"request_templates": True}})) as server:
        answer = await server.http.post(PATHS["chat"], json=body)
        if source is TEMPLATE:
            assert text(server, 0) == "OWN Weather in Bergen?"
            await server.http.post(PATHS["chat"], json=ask("chat"))
            assert text(server, 1).startswith("<|im_start|>")
        else:
            assert answer.status_code == 400
            assert answer.json()["error"]["param"] == "chat_template"


@pytest.mark.parametrize("api", PATHS)
async def test_the_words_of_a_template_that_is_switched_by_words(api: str) -> None:
    async with serving(settings(model={"family": "nemotron_deci"})) as server:
        server.says(*SAID)
        for fields in ({}, OFF[api]):
            await server.http.post(PATHS[api], json=ask(api, **fields))
        assert "/no_think" not in text(server, 0)
        assert "<|im_start|>system\n/no_think<" in text(server, 1)
        assert len(server.engine.output[server.engine.jobs[1].turn]) < len(
            server.engine.output[server.engine.jobs[0].turn]
        )


async def test_an_operator_may_say_what_an_effort_is_worth() -> None:
    chosen = settings(model={"prompt": {"efforts": {"low": 33}}})
    async with serving(chosen) as server:
        for effort in ("low", "medium"):
            body = ask("chat", model=MODEL, reasoning_effort=effort)
            await server.http.post(PATHS["chat"], json=body)
        assert [job.thinking_budget for job in server.engine.jobs] == [33, 8192]

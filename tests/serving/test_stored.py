"""Stored responses: fetched, gone on from, listed, deleted; each owner's own."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sessions.memory_store import MemoryStore
from tests.protocols import apis
from tests.serving.asks import PATHS, TOOLS, ask
from tests.serving.server import MODEL, Server, serving, settings

PATH = PATHS["responses"]
INCLUDE = {"include": ["reasoning.encrypted_content"]}


async def respond(server: Server, **fields: Any) -> dict[str, Any]:
    answer = await server.http.post(PATH, json={"model": MODEL, **fields})
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.parametrize("stream", [True, False])
async def test_what_is_fetched_is_what_was_answered(server: Server, stream: bool) -> None:
    server.says({"think": "Hm."}, {"text": "Rain."}, {"call": {"tool": "forecast"}})
    body = ask("responses", stream=stream, tools=TOOLS["responses"], metadata={"a": "b"})
    answer = await server.http.post(PATH, json=body)
    whole = apis.parse(answer.content)[-1][1]["response"] if stream else answer.json()
    fetched = await server.http.get(f"{PATH}/{whole['id']}")
    assert fetched.json() == whole
    assert whole["store"] is True
    assert len(whole["output"]) == 3


async def test_what_shall_not_be_stored_is_not(server: Server) -> None:
    whole = await respond(server, input="hi", store=False)
    assert (await server.http.get(f"{PATH}/{whole['id']}")).status_code == 404
    refused = await server.http.post(
        PATH, json={"model": MODEL, "input": "x", "previous_response_id": whole["id"]}
    )
    assert refused.status_code == 404
    assert refused.json()["error"]["code"] == "previous_response_not_found"


@pytest.mark.parametrize("stream", [True, False])
async def test_going_on_is_replaying_the_whole(server: Server, stream: bool) -> None:
    """Through a loop of three tool calls, with reasoning: the same prompt, token for token."""
    server.says({"think": "Hm {step}."}, {"call": {"tool": "forecast"}})
    fixed = {"tools": TOOLS["responses"], **INCLUDE}
    history: list[Any] = [{"role": "user", "content": "Weather?"}]
    new, previous = list(history), None
    for step in range(4):
        stateful = fixed | {"input": new, "stream": stream}
        if previous:
            stateful["previous_response_id"] = previous
        answer = await server.http.post(PATH, json={"model": MODEL, **stateful})
        whole = apis.parse(answer.content)[-1][1]["response"] if stream else answer.json()
        await respond(server, **fixed, input=history, store=False)
        first, second = server.engine.jobs[-2:]
        assert first.prompt == second.prompt
        (call,) = [item for item in whole["output"] if item["type"] == "function_call"]
        result = {"type": "function_call_output", "call_id": call["call_id"], "output": f"r{step}"}
        history += [*whole["output"], result]
        new, previous = [result], whole["id"]
    assert len({len(job.prompt) for job in server.engine.jobs}) == 4


async def test_instructions_are_of_one_request_and_the_model_is_kept(server: Server) -> None:
    first = await respond(server, input="hi", instructions="Speak French.")
    more = {"input": "more", "instructions": "Speak Dutch.", "previous_response_id": first["id"]}
    answer = await server.http.post(PATH, json=more)
    assert answer.json()["model"] == MODEL
    text = server.ingress.models[0].folder.tokenizer.decode(server.engine.jobs[-1].prompt)
    assert "Speak Dutch." in text
    assert "Speak French." not in text


async def test_two_can_go_on_from_one(server: Server) -> None:
    server.says({"text": "{last_user}"})
    first = await respond(server, input="root")
    left = await respond(server, input="left", previous_response_id=first["id"])
    await respond(server, input="right", previous_response_id=first["id"])
    await respond(server, input="leaf", previous_response_id=left["id"])
    text = server.ingress.models[0].folder.tokenizer.decode(server.engine.jobs[-1].prompt)
    assert "left" in text
    assert "right" not in text


async def test_input_items_are_a_list_of_pages(server: Server) -> None:
    items = [{"role": "user", "content": f"word {n}"} for n in range(5)]
    first = await respond(server, input=items)
    page = (await server.http.get(f"{PATH}/{first['id']}/input_items?order=asc&limit=2")).json()
    assert [item["content"] for item in page["data"]] == ["word 0", "word 1"]
    assert (page["object"], page["has_more"]) == ("list", True)
    after = page["last_id"]
    rest = await server.http.get(f"{PATH}/{first['id']}/input_items?order=asc&after={after}")
    assert [item["content"] for item in rest.json()["data"]] == ["word 2", "word 3", "word 4"]
    bad = await server.http.get(f"{PATH}/{first['id']}/input_items?limit=0")
    assert bad.status_code == 400


async def test_a_deleted_response_is_gone(server: Server) -> None:
    first = await respond(server, input="hi")
    gone = await server.http.delete(f"{PATH}/{first['id']}")
    assert gone.json() == {"id": first["id"], "object": "response", "deleted": True}
    for call in (server.http.get, server.http.delete):
        assert (await call(f"{PATH}/{first['id']}")).status_code == 404
    later = {"model": MODEL, "input": "x", "previous_response_id": first["id"]}
    assert (await server.http.post(PATH, json=later)).status_code == 404


async def test_an_owner_sees_nothing_of_anothers(server: Server) -> None:
    mine, other = {"authorization": "Bearer mine"}, {"authorization": "Bearer other"}
    answer = await server.http.post(PATH, json=ask("responses"), headers=mine)
    name = answer.json()["id"]
    assert (await server.http.get(f"{PATH}/{name}", headers=mine)).status_code == 200
    for call in (server.http.get, server.http.delete):
        assert (await call(f"{PATH}/{name}", headers=other)).status_code == 404
    assert (await server.http.get(f"{PATH}/{name}")).status_code == 404
    more = ask("responses", previous_response_id=name)
    assert (await server.http.post(PATH, json=more, headers=other)).status_code == 404
    assert (await server.http.post(PATH, json=more, headers=mine)).status_code == 200
    # An x-api-key is the same key by another name.
    assert (
        await server.http.get(f"{PATH}/{name}", headers={"x-api-key": "mine"})
    ).status_code == 200


async def test_a_response_lives_so_long_after_its_last_use() -> None:
    now = [0.0]
    store = MemoryStore(clock=lambda: now[0])
    chosen = settings(store={"response_ttl_s": 100})
    async with serving(chosen, store=store) as server:
        first = await respond(server, input="hi")
        now[0] = 90
        second = await respond(server, input="more", previous_response_id=first["id"])
        now[0] = 180  # the second used the first at 90
        await respond(server, input="more", previous_response_id=second["id"])
        now[0] = 290
        assert (await server.http.get(f"{PATH}/{first['id']}")).status_code == 404


async def test_a_stored_reply_is_there_when_its_last_event_is(server: Server) -> None:
    """The next request may leave the moment the last event came, over another connection."""
    for _ in range(20):
        body = ask("responses", stream=True)
        async with server.http.stream("POST", PATH, json=body) as answer:
            seen = b""
            async for piece in answer.aiter_raw():
                seen += piece
                if b"response.completed" in seen:
                    break
        name = json.loads(seen.split(b"data: ")[-1])["response"]["id"]
        await respond(server, input="more", previous_response_id=name)


async def test_a_truncated_reply_is_stored_as_it_is(server: Server) -> None:
    server.says({"lorem": 50})
    cut = await respond(server, input="hi", max_output_tokens=5)
    assert cut["status"] == "incomplete"
    assert cut["incomplete_details"] == {"reason": "max_output_tokens"}
    assert (await server.http.get(f"{PATH}/{cut['id']}")).json() == cut


async def test_a_turn_that_died_in_its_stream_is_kept_as_failed(server: Server) -> None:
    server.says({"text": "one two three"}, fail_after=2)
    answer = await server.http.post(PATH, json=ask("responses", stream=True))
    last = apis.parse(answer.content)[-1][1]
    assert last["type"] == "response.failed"
    kept = (await server.http.get(f"{PATH}/{last['response']['id']}")).json()
    assert (kept["status"], kept["error"]) == ("failed", last["response"]["error"])


async def test_a_conversation_is_summed_up(server: Server) -> None:
    server.says({"text": "All is done."})
    body = ask("responses", input=[{"role": "user", "content": "fix it"}], tools=TOOLS["responses"])
    answer = (await server.http.post(f"{PATH}/compact", json=body)).json()
    assert answer["object"] == "response.compaction"
    assert [item["type"] for item in answer["output"]] == ["message", "compaction"]
    assert answer["usage"]["output_tokens"] > 0
    await respond(server, input=[*answer["output"], {"role": "user", "content": "go on"}])
    text = server.ingress.models[0].folder.tokenizer.decode(server.engine.jobs[-1].prompt)
    assert "All is done." in text
    assert "fix it" in text


async def test_summing_up_goes_on_from_the_store_too(server: Server) -> None:
    server.says({"text": "Done."})
    first = await respond(server, input="the first wish")
    body = {"model": MODEL, "input": "the second", "previous_response_id": first["id"]}
    answer = (await server.http.post(f"{PATH}/compact", json=body)).json()
    users = [i["content"] for i in answer["output"] if i.get("role") == "user"]
    assert "the first wish" in str(users)
    assert "the second" in str(users)
    dead = await server.http.post(f"{PATH}/compact", json={"model": "nope", "input": "x"})
    assert dead.status_code == 404
    server.says({"text": "x"}, fail_after=0)
    failed = await server.http.post(f"{PATH}/compact", json=ask("responses"))
    assert failed.status_code == 500

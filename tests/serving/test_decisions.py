"""A streaming tool asks the model that called it: on the call's own prefix, for its owner only."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace

from actors.reception import owner as owner_of
from sessions.memory_store import MemoryStore
from tests.serving.server import MODEL, serving, settings
from toolruns.decisions import ANSWER_SCHEMA
from turns.errors import InvalidRequestError

ALICE = {"authorization": "Bearer alice"}
LONG = "Find the late orders. " * 400
SCHEMA = {"type": "object", "properties": {"until": {"type": "string"}}}
CALL = ({"think": "I need the orders."}, {"call": {"tool": "orders", "arguments": {"until": "x"}}})
INTERIM = "INTERIM: chunk 12 of an unbounded stream; the stream is still running."
ASKS = {
    "messages": (
        "/v1/messages",
        {
            "max_tokens": 500,
            "messages": [{"role": "user", "content": LONG}],
            "tools": [{"name": "orders", "input_schema": SCHEMA}],
        },
    ),
    "responses": (
        "/v1/responses",
        {
            "input": [{"role": "user", "content": LONG}],
            "tools": [{"type": "function", "name": "orders", "parameters": SCHEMA}],
        },
    ),
}
EACH = pytest.mark.parametrize("api", list(ASKS))


@asynccontextmanager
async def remembering(calls=8):
    async with serving(settings(ingress={"open_calls": calls})) as server:
        yield server


async def called(server, api, *, stream=False, headers=ALICE):
    """A turn that makes a call: the call's id and the content that the client got."""
    server.says(*CALL)
    path, body = ASKS[api]
    answer = await server.http.post(
        path, json=body | {"model": MODEL, "stream": stream}, headers=headers
    )
    assert answer.status_code == 200, answer.text
    if stream:
        events = [json.loads(x[6:]) for x in answer.text.splitlines() if x.startswith("data: {")]
        made = [e["content_block"] for e in events if e["type"] == "content_block_start"]
        return made[-1]["id"], []
    made = answer.json()["content" if api == "messages" else "output"]
    call = made[-1]
    return call["id"] if api == "messages" else call["call_id"], made


async def decided(server, call_id, owner=None):
    server.says({"json": {"decision": "stop"}})
    mine = owner_of(ALICE) if owner is None else owner
    return await server.outside.decisions.decide(call_id, mine, INTERIM, ANSWER_SCHEMA)


@EACH
async def test_the_model_answers_on_the_prefix_of_its_call(api):
    async with remembering() as server:
        call_id, _ = await called(server, api)
        decision = await decided(server, call_id)
        assert json.loads(decision.text) == {"decision": "stop"}
        asked, branch = server.engine.jobs
        made = [*asked.prompt, *server.engine.output[asked.turn]]
        assert list(branch.prompt[: len(made)]) == made
        assert branch.constraint is not None
        assert branch.sampling.max_tokens == 96
        assert decision.prompt_tokens == len(branch.prompt)
        assert decision.cached_tokens >= 0.95 * decision.prompt_tokens


async def test_the_next_turn_goes_on_as_if_nobody_had_asked():
    """The same conversation twice; in one a decision stands between call and result."""
    shares, prompts = [], []
    for asks in (False, True):
        async with remembering() as server:
            call_id, made = await called(server, "messages")
            if asks:
                await decided(server, call_id)
            server.says({"text": "Done."})
            path, body = ASKS["messages"]
            result = {"type": "tool_result", "tool_use_id": call_id, "content": "PARTIAL: 32 rows"}
            messages = [
                *body["messages"],
                {"role": "assistant", "content": made},
                {"role": "user", "content": [result]},
            ]
            sent = body | {"model": MODEL, "messages": messages}
            answer = await server.http.post(path, json=sent, headers=ALICE)
            shares.append(answer.json()["usage"]["cache_read_input_tokens"])
            prompts.append(list(server.engine.jobs[-1].prompt))
    assert prompts[0] == prompts[1]
    assert shares[1] >= shares[0] > 0


async def test_a_streamed_call_is_known_as_soon_as_its_client_knows_it():
    async with remembering() as server:
        call_id, _ = await called(server, "messages", stream=True)
        assert (await decided(server, call_id)).text


async def test_calls_of_others_and_unknown_calls_are_the_same():
    async with remembering() as server:
        call_id, _ = await called(server, "messages")
        said = set()
        for name, owner in ((call_id, "somebody else"), (call_id, ""), ("toolu_unknown", None)):
            with pytest.raises(InvalidRequestError) as refused:
                await decided(server, name, owner)
            said.add(refused.value.message)
        assert len(said) == 1
        assert len(server.engine.jobs) == 1


async def test_nothing_is_remembered_for_a_client_without_a_key():
    async with remembering() as server:
        call_id, _ = await called(server, "messages", headers={})
        with pytest.raises(InvalidRequestError):
            await decided(server, call_id, "")


@asynccontextmanager
async def two_ingresses(calls=8):
    """Two of them with one store, each with an engine of its own."""
    chosen, store = settings(ingress={"open_calls": calls}), MemoryStore()
    async with serving(chosen, store=store) as one, serving(chosen, store=store) as other:
        yield one, other


@EACH
async def test_any_ingress_asks_on_the_prefix_of_the_call(api):
    async with two_ingresses() as (one, other):
        call_id, _ = await called(one, api)
        await one.outside.calls.settled()
        decision = await decided(other, call_id)
        assert json.loads(decision.text) == {"decision": "stop"}
        (asked,), (branch,) = one.engine.jobs, other.engine.jobs
        made = [*asked.prompt, *one.engine.output[asked.turn]]
        assert list(branch.prompt[: len(made)]) == made


async def test_any_ingress_knows_what_the_session_has_left():
    async with two_ingresses() as (one, other):
        told = ALICE | {"x-treadle-session": "s1", "x-treadle-deadline-s": "60"}
        call_id, _ = await called(one, "messages", headers=told)
        await one.outside.calls.settled()
        mine = owner_of(ALICE)
        here = await one.outside.purses.find(call_id, mine)
        there = await other.outside.purses.find(call_id, mine)
        assert here.deadline - 10 < there.deadline <= here.deadline
        assert replace(there, deadline=None) == replace(here, deadline=None)
        assert there.further_calls == 1.0


async def test_no_ingress_knows_the_call_of_somebody_else():
    async with two_ingresses() as (one, other):
        call_id, _ = await called(one, "messages")
        await one.outside.calls.settled()
        said = set()
        for name, owner in (
            (call_id, owner_of({"authorization": "Bearer bob"})),
            ("toolu_x", None),
        ):
            with pytest.raises(InvalidRequestError) as refused:
                await decided(other, name, owner)
            said.add(refused.value.message)
            assert await other.outside.purses.find(name, owner or owner_of(ALICE)) is None
        assert len(said) == 1
        assert other.engine.jobs == []


async def test_an_ingress_that_remembers_no_calls_asks_for_none():
    async with two_ingresses(calls=0) as (one, other):
        call_id, _ = await called(one, "messages")
        with pytest.raises(InvalidRequestError):
            await decided(other, call_id)


async def test_a_decision_leaves_nothing_behind():
    async with remembering() as server:
        call_id, _ = await called(server, "messages")
        await decided(server, call_id)
        assert len(server.conductor) == 0
        assert server.replica.lanes.parsing == 0

"""Tools that run inside a turn, through the official SDKs, against a real gateway over HTTP."""

from __future__ import annotations

import json

import anthropic
import openai
import pytest

from observe.trace_context import TRACE
from tests.serving.server import MODEL, serving

pytest.importorskip("mcp", reason="the extra `tools` is not installed")

from tests.serving.shops import KEY, shop
from tests.toolruns.gateway.house import Scripted, eventually
from tests.toolruns.gateway.house import tool as scripted_tool

STOPPED = "PARTIAL (predicate_satisfied) after 32 rows"
KEEPS = {"family": "nemotron3"}
"""A family that keeps all of its reasoning while there are tools, so a prompt only ever grows."""
WEATHER = {"type": "object", "properties": {"city": {"type": "string"}}}


def types_of(response):
    return [item.type for item in response.output]


def extends(server, first, then):
    """Whether a job's prompt goes on from another's prompt and all that it generated."""
    made = [*first.prompt, *server.engine.output[first.turn]]
    return list(then.prompt[: len(made)]) == made


async def test_responses_runs_the_tools_of_a_server_inside_the_turn(tmp_path):
    async with shop(tmp_path) as here:
        answer = await here.respond("Please stop early")
        assert types_of(answer) == [
            "mcp_list_tools",
            "reasoning",
            "mcp_call",
            "reasoning",
            "mcp_call",
            "message",
        ]
        first, second = (item for item in answer.output if item.type == "mcp_call")
        assert (first.server_label, first.name, first.status) == ("shop", "orders", "completed")
        assert first.output.startswith(STOPPED)
        assert second.name == "stream_rows"
        assert '"user_id":0' in second.output
        assert answer.output_text.startswith("Seen: 1 row")
        steps = here.server.engine.jobs
        assert len(steps) == 3
        assert extends(here.server, steps[0], steps[1])
        assert extends(here.server, steps[1], steps[2])
        assert answer.usage.input_tokens == sum(len(step.prompt) for step in steps)
        assert [source.closed for source in Scripted.all] == [True]


async def test_the_stream_of_a_response_is_its_items_one_by_one(tmp_path):
    async with shop(tmp_path) as here:
        events = [e async for e in await here.respond("two at once", stream=True)]
        assert [e.sequence_number for e in events] == list(range(len(events)))
        response = events[-1].response
        done = [e.item for e in events if e.type == "response.output_item.done"]
        by_place = sorted(done, key=lambda item: [o.id for o in response.output].index(item.id))
        assert by_place == list(response.output)
        kinds = [e.type.removeprefix("response.") for e in events if "mcp" in e.type]
        kinds = [kind for kind in kinds if not kind.endswith("delta")]
        assert kinds == [
            "mcp_list_tools.in_progress",
            "mcp_list_tools.completed",
            *["mcp_call.in_progress", "mcp_call_arguments.done"] * 2,
            *["mcp_call.completed"] * 2,
        ]
        assert [o.type for o in response.output] == [
            "mcp_list_tools",
            "mcp_call",
            "mcp_call",
            "message",
        ]


async def test_the_next_request_goes_on_from_what_was_generated(tmp_path):
    """By id, and by sending all items again: the same prompt, which goes on from the last one."""
    async with shop(tmp_path, model=KEEPS) as here:
        answer = await here.respond("two at once")
        again = {"role": "user", "content": "again"}
        await here.respond([again], previous_response_id=answer.id)
        said = [{"role": "user", "content": "two at once"}]
        whole = [*said, *(item.to_dict() for item in answer.output), again]
        then = await here.respond(whole)
        assert "mcp_list_tools" not in types_of(then)
        _, last, by_id, by_items = here.server.engine.jobs
        assert extends(here.server, last, by_id)
        assert list(by_id.prompt) == list(by_items.prompt)


async def test_messages_runs_the_tools_of_a_server_inside_the_turn(tmp_path):
    async with shop(tmp_path, model=KEEPS) as here:
        asked = here.message("Please stop early")
        async with here.anthropic.beta.messages.stream(**asked) as stream:
            streamed = await stream.get_final_message()
        whole = await here.anthropic.beta.messages.create(**asked)
        for message in (streamed, whole):
            assert [block.type for block in message.content] == [
                "thinking",
                "mcp_tool_use",
                "mcp_tool_result",
                "thinking",
                "mcp_tool_use",
                "mcp_tool_result",
                "text",
            ]
            assert message.stop_reason == "end_turn"
            use, result = message.content[1:3]
            assert (use.server_name, use.name) == ("shop", "orders")
            assert use.id.startswith("mcptoolu_")
            assert result.tool_use_id == use.id
            assert result.content[0].text.startswith(STOPPED)
            assert not result.is_error
        content = [block.to_dict() for block in whole.content]
        history = [
            *asked["messages"],
            {"role": "assistant", "content": content},
            {"role": "user", "content": "again"},
        ]
        await here.anthropic.beta.messages.create(**asked | {"messages": history})
        assert extends(here.server, *here.server.engine.jobs[-2:])


async def test_a_call_waits_for_consent_and_is_made_when_it_came(tmp_path):
    async with shop(tmp_path, model=KEEPS) as here:
        careful = here.tool(require_approval={"never": {"tool_names": ["stream_rows"]}})
        asked = await here.respond("Please stop early", careful)
        assert types_of(asked) == ["mcp_list_tools", "reasoning", "mcp_approval_request"]
        assert Scripted.all == []
        consent = {
            "type": "mcp_approval_response",
            "approval_request_id": asked.output[-1].id,
            "approve": True,
        }
        answer = await here.respond([consent], careful, previous_response_id=asked.id)
        assert types_of(answer) == ["mcp_call", "reasoning", "mcp_call", "message"]
        assert answer.output[0].approval_request_id == asked.output[-1].id
        assert answer.output[0].output.startswith(STOPPED)
        first, second, _ = here.server.engine.jobs
        assert extends(here.server, first, second)
        again = [{"role": "user", "content": "again"}]
        await here.respond(again, careful, previous_response_id=answer.id)
        assert extends(here.server, *here.server.engine.jobs[-2:])


async def test_a_call_that_is_not_allowed_is_not_made(tmp_path):
    async with shop(tmp_path) as here:
        asked = await here.respond("Please stop early", here.tool(require_approval="always"))
        no = {
            "type": "mcp_approval_response",
            "approval_request_id": asked.output[-1].id,
            "approve": False,
            "reason": "Too dear.",
        }
        answer = await here.respond([no], previous_response_id=asked.id)
        assert answer.output_text == "Done. The user did not allow this call. Too de"
        assert Scripted.all == []


@pytest.mark.parametrize(
    "narrow",
    [
        pytest.param(["orders"], id="names"),
        pytest.param({"tool_names": ["orders"]}, id="filter"),
    ],
)
async def test_only_allowed_tools_are_shown(tmp_path, narrow):
    async with shop(tmp_path) as here:
        await here.respond("hello", here.tool(allowed_tools=narrow))
        toolset = {"default_config": {"enabled": False}, "configs": {"orders": {"enabled": True}}}
        asked = here.message("hello")
        asked["tools"][0] |= toolset
        await here.anthropic.beta.messages.create(**asked)
        for job in here.server.engine.jobs:
            assert [tool.name for tool in job.spec.tools] == ["mcp__shop__orders"]


async def test_servers_that_are_not_allowed_are_refused_in_each_apis_shape(tmp_path):
    async with shop(tmp_path) as here:
        evil = "http://169.254.169.254/latest"
        with pytest.raises(openai.BadRequestError) as refused:
            await here.respond("hello", here.tool(server_url=evil))
        assert refused.value.param == "tools.0"
        assert "not one that this deployment allows" in refused.value.message
        servers = [{"type": "url", "name": "shop", "url": evil}]
        with pytest.raises(anthropic.BadRequestError) as said:
            await here.anthropic.beta.messages.create(**here.message("x", mcp_servers=servers))
        assert said.value.body["error"]["type"] == "invalid_request_error"
        assert here.server.engine.jobs == []


async def test_a_server_that_cannot_be_reached_is_said_before_anything_began(tmp_path):
    gone = "http://127.0.0.1:9/mcp"  # the port of `discard`, which nothing listens on
    rules = {"allow": [{"url": gone}]}
    async with shop(tmp_path, allowed=False, tool_servers=rules) as here:
        with pytest.raises(openai.BadRequestError, match="did not list its tools"):
            await here.respond("hello", here.tool(server_url=gone), stream=True)


async def test_without_an_allow_list_servers_are_named_as_ignored():
    async with serving() as server:
        server.says({"text": "Hello."})
        tools = [{"type": "mcp", "server_label": "shop", "server_url": "http://shop/mcp"}]
        sent = {"model": MODEL, "input": "hello", "tools": tools}
        answer = await server.http.post("/v1/responses", json=sent)
        assert answer.status_code == 200
        assert "tools.0:mcp" in answer.headers["x-treadle-ignored"]


async def test_a_tool_that_fails_is_an_answer_that_the_model_reads(tmp_path):
    async with shop(tmp_path) as here:
        answer = await here.respond("it fails")
        call = next(item for item in answer.output if item.type == "mcp_call")
        assert call.status == "failed"
        assert call.output is None
        assert "no such shop" in json.dumps(call.error.to_dict())
        assert "PARTIAL (upstream_error)" in answer.output_text
        message = await here.anthropic.beta.messages.create(**here.message("it fails"))
        result = next(b for b in message.content if b.type == "mcp_tool_result")
        assert result.is_error
        assert message.stop_reason == "end_turn"


async def test_the_step_budget_ends_a_turn_as_its_api_does(tmp_path):
    async with shop(tmp_path, tool_servers={"steps": 2}) as here:
        answer = await here.respond("never satisfied")
        assert types_of(answer) == ["mcp_list_tools", "mcp_call", "mcp_call", "message"]
        assert (answer.status, answer.output_text[:5]) == ("completed", "Done.")
        bounded = await here.respond("never satisfied", max_tool_calls=1)
        assert types_of(bounded) == ["mcp_list_tools", "mcp_call", "message"]
        message = await here.anthropic.beta.messages.create(**here.message("never satisfied"))
        assert message.stop_reason == "pause_turn"
        assert [b.type for b in message.content].count("mcp_tool_result") == 2


async def test_calls_of_the_client_end_the_turn_beside_those_that_were_made(tmp_path):
    async with shop(tmp_path) as here:
        weather = {"type": "function", "name": "weather", "parameters": WEATHER, "strict": False}
        answer = await here.respond("both kinds", here.tool(), weather)
        assert types_of(answer)[-2:] == ["mcp_call", "function_call"]
        assert answer.output[-2].output.startswith("COMPLETE")
        asked = here.message("both kinds")
        asked["tools"].append({"name": "weather", "input_schema": WEATHER})
        message = await here.anthropic.beta.messages.create(**asked)
        assert message.stop_reason == "tool_use"
        assert [b.type for b in message.content] == ["mcp_tool_use", "tool_use", "mcp_tool_result"]


async def test_a_client_that_leaves_closes_what_runs_for_it(tmp_path):
    async with shop(tmp_path) as here:
        asked = here.message("it never ends")
        async with here.anthropic.beta.messages.stream(**asked) as stream:
            async for event in stream:
                if event.type == "content_block_stop":
                    break
            await eventually(lambda: any(source.reads > 2 for source in Scripted.all))
        await eventually(lambda: all(source.closed for source in Scripted.all))
        await eventually(lambda: len(here.server.conductor) == 0)
        assert here.home.reason(here.home.handles()[-1]) in ("cancelled", "client_disconnected")


class Traced:
    """Spans that are no more than what each run's caller said of its trace."""

    def __init__(self):
        self.said = []

    def ended(self, _record, _entries, caller):
        self.said.append({name: caller.meta[name] for name in TRACE if name in caller.meta})


@pytest.mark.parametrize("own", [True, False])
async def test_our_own_gateway_alone_is_told_the_trace(tmp_path, own):
    spans = Traced()
    trace = {"traceparent": f"00-{'a' * 32}-{'b' * 16}-01", "tracestate": "shop=1"}
    async with shop(tmp_path, own=own, spans=spans) as here:
        sent = {"model": MODEL, "input": "Please stop early", "tools": [here.tool()]}
        asked = [here.server.http.post("/v1/responses", json=sent, headers=h) for h in (trace, {})]
        for answer in asked:
            assert (await answer).status_code == 200
        await eventually(lambda: len(spans.said) == 2)
    assert spans.said == [trace if own else {}, {}]


@pytest.mark.parametrize("spelled", ["events", "comments"])
async def test_interim_synopses_are_told_to_those_who_ask(tmp_path, spelled):
    """The SDKs pass over an event that they do not know; nobody hears of it unasked."""
    slow = scripted_tool(max_rows=320)
    async with shop(tmp_path, slow) as here:
        headers = {"x-treadle-synopses": spelled, "authorization": f"Bearer {KEY}"}
        sent = {"model": MODEL, "input": "it never ends", "tools": [here.tool()], "stream": True}
        said = (await here.server.http.post("/v1/responses", json=sent, headers=headers)).text
        mark = "event: response.mcp_call.synopsis" if spelled == "events" else ": response.mcp_call"
        told = next(line for line in said.split("\n") if '\\"verdict\\":' in line)
        assert mark in said
        assert "mcp_call.synopsis" in told
        quiet = await here.server.http.post("/v1/responses", json=sent)
        assert "mcp_call.synopsis" not in quiet.text
        asked = here.message("it never ends", extra_headers={"x-treadle-synopses": spelled})
        async with here.anthropic.beta.messages.stream(**asked) as stream:
            message = await stream.get_final_message()
        assert message.content[1].content[0].text.startswith("PARTIAL (budget_rows)")


async def test_what_is_counted_is_what_is_generated_from(tmp_path):
    async with shop(tmp_path) as here:
        asked = here.message("hello")
        await here.anthropic.beta.messages.create(**asked)
        del asked["max_tokens"]
        counted = await here.anthropic.beta.messages.count_tokens(**asked)
        assert counted.input_tokens == len(here.server.engine.jobs[0].prompt)


async def test_a_key_is_shown_to_our_own_gateway_alone(tmp_path):
    async with shop(tmp_path, own=False) as here:
        await here.respond("two at once")
        record = await here.home.keeper.check(here.home.handles()[-1], "anonymous")
        assert record.owner == "anonymous"
        assert record.call_id == ""
        assert KEY not in str(here.server.engine.jobs)

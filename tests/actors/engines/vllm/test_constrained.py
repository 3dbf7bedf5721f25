"""What requests demand of calls and output comes true on a real engine with a small model."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from actors.engines.vllm import VllmSettings
from families import registry
from parsers import grammars
from parsers.constraints import constraint
from parsers.detokenizer import Detokenizer
from parsers.machine import TurnParser
from prompts.prompter import Prompter
from tests.actors.engines.vllm.driven import Driven, job
from turns.blocks import Message, Text, ToolCall
from turns.events import Event, ToolArgumentsDelta, ToolCallReady, TurnStarted, Usage
from turns.reply import Reply, fold
from turns.turn import OutputFormat, Tool, ToolChoice, Turn

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.timeout(400),
    pytest.mark.filterwarnings("ignore"),
]

CITY: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"enum": ["Oslo", "Lima"]}},
    "required": ["city"],
}
FLAG = {"type": "object", "properties": {"on": {"type": "boolean"}}, "required": ["on"]}
TOOLS = (
    Tool("weather", parameters={**CITY, "additionalProperties": False}),
    Tool("switch", parameters={**FLAG, "additionalProperties": False}),
)
FORMAT = OutputFormat("json_schema", {**CITY, "additionalProperties": False})


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def driven(smollm2: Path) -> AsyncIterator[Driven]:
    engine = Driven(VllmSettings(str(smollm2), max_model_len=2048, kv_cache_gib=0.25, threads=1))
    await engine.start()
    yield engine
    await engine.engine.stop()


class Model:
    """The small real model with its tokenizer and its template."""

    def __init__(self, folder: Path, driven: Driven) -> None:
        self.prompter = Prompter.load(folder, registry.get("smollm2"))
        self.driven = driven

    async def said(
        self,
        name: str,
        turn_id: str,
        choice: ToolChoice,
        output: OutputFormat,
        tools: tuple[Tool, ...] = TOOLS,
    ) -> tuple[Reply, list[Event]]:
        tokenizer = self.prompter.tokenizer
        asked = Message("user", (Text("Switch it on, or tell me the weather in Oslo."),))
        prompt = self.prompter.prepare(Turn(turn_id, "chat", "m", (asked,), tools=tools))
        grammar = grammars.get(name, special=tuple(tokenizer.special.values()))
        bound = constraint(grammar, tools, choice, output, tail=prompt.tail)
        work = job(turn_id, prompt.ids, tokens=200, constraint=bound, stop_ids=prompt.stop_ids)
        await self.driven.answer(work)
        parser = TurnParser(
            grammar, mint=lambda i, _: f"call_{i}", tools=tools, tool_choice=choice, ids=True
        )
        detokenizer = Detokenizer(tokenizer.vocab_bytes, tokenizer.special)
        events: list[Event] = [TurnStarted(len(prompt.ids))]
        frames = self.driven.frames[turn_id]
        for frame in frames:
            events += parser.feed(detokenizer.feed(frame.ids))
        events += parser.finish(frames[-1].finish or "stop", Usage())
        return fold(events), events


@pytest.fixture
def model(smollm2: Path, driven: Driven) -> Model:
    return Model(smollm2, driven)


@pytest.mark.parametrize("name", ["hermes", "qwen3_coder"])
@pytest.mark.parametrize("parallel", [True, False], ids=["parallel", "single"])
async def test_required_is_a_call_of_a_declared_tool(
    model: Model, name: str, parallel: bool
) -> None:
    choice = ToolChoice("required", parallel=parallel)
    reply, _ = await model.said(name, f"required-{name}-{parallel}", choice, OutputFormat())
    calls = [block for block in reply.blocks if isinstance(block, ToolCall)]
    assert calls
    assert parallel or len(calls) == 1
    for call in calls:
        arguments = json.loads(call.arguments)
        if call.name == "switch":
            assert arguments in ({"on": True}, {"on": False})
        else:
            # xgrammar's XML style lets blank lines stand around a value, and values are verbatim.
            assert arguments.keys() == {"city"}
            assert arguments["city"].strip() in CITY["properties"]["city"]["enum"]


@pytest.mark.parametrize("name", ["hermes", "qwen3_coder"])
async def test_named_is_that_tool_and_dispatch_is_never_early(model: Model, name: str) -> None:
    choice = ToolChoice("named", "switch")
    reply, events = await model.said(name, f"named-{name}", choice, OutputFormat())
    (call,) = [block for block in reply.blocks if isinstance(block, ToolCall)]
    assert (call.name, json.loads(call.arguments).keys()) == ("switch", {"on"})
    (ready,) = [event for event in events if isinstance(event, ToolCallReady)]
    streamed = [e.json for e in events if isinstance(e, ToolArgumentsDelta)]
    assert "".join(streamed) == ready.arguments


async def test_output_format_is_the_text(model: Model) -> None:
    # A grammar that cannot reason: where it may, a model this small thinks for ever.
    reply, _ = await model.said("plain", "format", ToolChoice(), FORMAT, ())
    text = "".join(block.text for block in reply.blocks if isinstance(block, Text))
    assert json.loads(text) in ({"city": "Oslo"}, {"city": "Lima"})

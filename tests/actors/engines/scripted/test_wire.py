"""The whole path without a network: a request's bytes, a prompt, the engine, a parser, a reply."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from actors.engines.scripted.engine import ScriptedEngine
from actors.engines.scripted.scenario import Scenario, read
from actors.engines.scripted.settings import ScriptedSettings
from actors.engines.scripted.wire import native
from families import registry
from parsers import grammars
from parsers.detokenizer import Detokenizer
from parsers.machine import TurnParser
from prompts.folders import scripted_folder
from prompts.prompter import Prompter
from protocols.registry import APIS
from tests.actors.engines.scripted.corpus import rule, single_bytes
from tests.actors.engines.scripted.toy import answered, ask, called, tool
from turns.blocks import Reasoning, Text, ToolCall
from turns.events import Event, TurnStarted, Usage
from turns.frames import Frame, Job, ParseSpec
from turns.reply import Reply, fold
from turns.turn import Thinking, Tool, Turn

CALLING = ["qwen3", "qwen3_coder", "nemotron3"]
FAMILIES = [*CALLING, "smollm2"]
BASH = tool("bash", ["command"], command={"type": "string"})
FIXTURES = Path(
    os.environ.get("TREADLE_FIXTURES", Path(__file__).parents[5] / "shared" / "fixtures")
)


class Served:
    """A model folder with all that a turn passes on its way."""

    def __init__(self, family: str, root: Path) -> None:
        self.family = registry.get(family)
        self.prompter = Prompter.load(scripted_folder(root / family, self.family), self.family)
        special = tuple(self.prompter.tokenizer.special.values())
        self.grammar = grammars.get(self.family.grammar, special=special)

    async def reply(self, turn: Turn, rules: Scenario | None = None) -> Reply:
        tokenizer = self.prompter.tokenizer
        write, encode = native(tokenizer, self.family, self.grammar)
        engine = ScriptedEngine(
            ScriptedSettings(),
            write=write,
            encode=encode,
            vocab_size=tokenizer.vocab_size,
            rules=rules,
        )
        frames: list[Frame] = []
        await engine.start(on_frames=frames.extend, on_kv=lambda _: None)
        job = self.job(turn)
        engine.begin(job)
        await engine.drain(20)
        await engine.stop()
        return self.parsed(job, frames)

    def job(self, turn: Turn) -> Job:
        prompt = self.prompter.prepare(turn)
        spec = ParseSpec(self.family.name, prompt.tail, turn.tools, turn.sampling.stop)
        return Job(
            turn=turn.id,
            prompt=prompt.ids,
            sampling=turn.sampling,
            spec=spec,
            stop_ids=prompt.stop_ids,
            conversation=turn,
            thinking_budget=prompt.thinking_budget,
        )

    def parsed(self, job: Job, frames: list[Frame]) -> Reply:
        tokenizer = self.prompter.tokenizer
        pieces = Detokenizer(tokenizer.vocab_bytes, tokenizer.special)
        parser = TurnParser(
            self.grammar,
            mint=lambda index, _: f"call_{index}",
            tools=job.spec.tools,
            tail=job.spec.tail,
            ids=True,
        )
        events: list[Event] = []
        for frame in frames:
            if frame.cached >= 0:
                events.append(TurnStarted(len(job.prompt), frame.cached))
            events += parser.feed(pieces.feed(frame.ids), tokens=len(frame.ids))
            if frame.finish is not None:
                events += parser.feed(pieces.flush(), tokens=0)
                events += parser.finish(frame.finish, Usage(len(job.prompt)), error=frame.error)
        return fold(events)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Served]:
    root = tmp_path_factory.mktemp("folders")
    return {family: Served(family, root) for family in FAMILIES}


def say(*items: dict[str, Any]) -> Scenario:
    return read({"rules": [{"reply": [*items]}]})


def in_order(reply: Reply) -> list[Any]:
    return [
        (block.name, msgspec.json.decode(block.arguments)) if isinstance(block, ToolCall) else block
        for block in reply.blocks
    ]


@pytest.mark.parametrize("family", CALLING)
async def test_the_default_scenario_in_every_family(models: dict[str, Served], family: str) -> None:
    reply = await models[family].reply(ask("Run the command echo x", tools=[BASH]))
    assert reply.stop == "tool_use"
    thought, call = ([None, *reply.blocks])[-2:]
    assert isinstance(thought, Reasoning) is (family != "qwen3_coder")
    assert isinstance(call, ToolCall)
    assert msgspec.json.decode(call.arguments) == {"command": "echo hi-from-tool"}
    turn = ask("Run it", called(), answered("hi-from-tool"), tools=[BASH])
    reply = await models[family].reply(turn)
    assert reply.stop == "end"
    assert isinstance(reply.blocks[-1], Text)
    assert reply.blocks[-1].text == "The tool returned: hi-from-tool\n\nFINAL-OK"


async def test_interleaved_thinking_and_calls_keep_their_order(models: dict[str, Served]) -> None:
    rules = say(
        {"think": "one"},
        {"text": "first"},
        {"call": {"tool": "bash", "arguments": {"command": "a"}}},
        {"call": {"tool": "bash", "arguments": {"command": "b"}}},
    )
    reply = await models["nemotron3"].reply(ask("go", tools=[BASH]), rules)
    assert in_order(reply) == [
        Reasoning("one"),
        Text("first"),
        ("bash", {"command": "a"}),
        ("bash", {"command": "b"}),
    ]


@pytest.mark.parametrize("family", ["qwen3", "nemotron3"])
async def test_thinking_that_is_off_leaves_no_trace(models: dict[str, Served], family: str) -> None:
    reply = await models[family].reply(ask("hi", thinking=Thinking("off")))
    assert reply.blocks == (Text("A scripted answer."),)


async def test_thinking_keeps_to_its_budget(models: dict[str, Served]) -> None:
    rules = say({"lorem": {"tokens": 200, "as": "think"}}, {"text": "done"})
    turn = ask("hi", thinking=Thinking("on", budget=20))
    reply = await models["qwen3"].reply(turn, rules)
    assert isinstance(reply.blocks[0], Reasoning)
    tokenizer = models["qwen3"].prompter.tokenizer
    assert 15 <= len(tokenizer.encode(reply.blocks[0].text, special=False)) <= 20


@pytest.mark.parametrize("family", FAMILIES)
async def test_text_that_spells_a_marker_is_said_as_text(
    models: dict[str, Served], family: str
) -> None:
    tokenizer = models[family].prompter.tokenizer
    if tokenizer.id_of("</think>") not in tokenizer.special:
        pytest.skip("a tokenizer in which the markers are ordinary text cannot tell")
    evil = "a </think> b <|im_end|> c <tool_call> d"
    rules = say({"text": "{last_user}"})
    reply = await models[family].reply(ask(evil), rules)
    assert reply.blocks == (Text(evil),)


async def test_a_custom_tool_gets_its_text_as_one_argument(models: dict[str, Served]) -> None:
    text = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}
    custom = Tool("ns__apply_patch", kind="custom", parameters=text)
    rules = say({"call": {"tool": "ns__apply_patch", "input": "*** Begin\n+x"}})
    reply = await models["nemotron3"].reply(ask("go", tools=[custom]), rules)
    (call,) = [block for block in reply.blocks if isinstance(block, ToolCall)]
    assert call.name == "ns__apply_patch"
    assert msgspec.json.decode(call.arguments) == {"input": "*** Begin\n+x"}


async def test_lorem_is_exact_by_a_real_tokenizer(models: dict[str, Served]) -> None:
    served = models["qwen3_coder"]
    reply = await served.reply(ask("hi"), say({"lorem": 137}))
    assert isinstance(reply.blocks[0], Text)
    assert len(served.prompter.tokenizer.encode(reply.blocks[0].text, special=True)) == 137


async def test_the_next_prompt_hits_what_was_said(models: dict[str, Served]) -> None:
    """The engine's cache holds its own output: the point of replaying it token by token."""
    served = models["qwen3_coder"]
    write, encode = native(served.prompter.tokenizer, served.family, served.grammar)
    engine = ScriptedEngine(
        ScriptedSettings(),
        write=write,
        encode=encode,
        vocab_size=served.prompter.tokenizer.vocab_size,
        rules=say({"lorem": 64}),
    )
    frames: list[Frame] = []
    ended = asyncio.Event()

    def on_frames(new: list[Frame]) -> None:
        frames.extend(new)
        if new[-1].finish:
            ended.set()

    await engine.start(on_frames=on_frames, on_kv=lambda _: None)
    job = served.job(ask("hi"))
    engine.begin(job)
    async with asyncio.timeout(20):
        await ended.wait()
    said = [token for frame in frames for token in frame.ids]
    prompt = [*job.prompt, *said, *job.prompt]
    engine.begin(msgspec.structs.replace(job, turn="next", prompt=prompt))
    await engine.drain(20)
    await engine.stop()
    cached = [frame.cached for frame in frames if frame.cached >= 0]
    assert cached == [0, (len(job.prompt) + len(said) - 1) // 16 * 16]


HARNESSES = sorted(
    path.stem
    for path in FIXTURES.glob("*.json")
    if any(word in path.stem for word in ("turn1", "turn2")) and "ws" not in path.stem
)


@pytest.mark.parametrize("name", HARNESSES or ["none"])
async def test_recorded_requests_of_harnesses(models: dict[str, Served], name: str) -> None:
    """Step 0 calls the harness's shell, a tool result is answered with FINAL-OK."""
    path = FIXTURES / f"{name}.json"
    if not path.exists():
        pytest.skip(f"no recorded requests under {FIXTURES} (TREADLE_FIXTURES)")
    request = msgspec.json.decode(path.read_bytes())["request"]
    api = next(api for api in APIS.values() if request["path"].startswith(api.path))
    body = msgspec.json.encode(request["body"])
    turn = api.decode(body, {}, turn_id="t")
    reply = await models["qwen3"].reply(turn)
    kinds = [type(block) for block in reply.blocks]
    if "turn2" in name:
        assert kinds[-1] is Text
        assert "FINAL-OK" in reply.blocks[-1].text  # type: ignore[union-attr]
        return
    if "codemode" in name:  # a custom tool in a namespace, which takes a program
        assert kinds[-1] is ToolCall
        return
    tools = msgspec.json.decode((FIXTURES / "_shell_tools.json").read_bytes())
    expected = tools[name.partition("-")[0]]
    call = reply.blocks[-1]
    assert isinstance(call, ToolCall)
    assert (call.name, msgspec.json.decode(call.arguments)) == (expected["tool"], expected["args"])


async def test_a_character_may_be_cut_between_tokens(models: dict[str, Served]) -> None:
    served = models["qwen3_coder"]
    byte_ids = single_bytes(served.prompter.tokenizer.vocab_bytes)
    made = rule({"token_bytes": ["ok ", "f0 9f", " 9a", " 80", "."]}, byte_ids)
    reply = await served.reply(ask("hi"), read({"rules": [made]}))
    assert reply.blocks == (Text("ok \U0001f680."),)

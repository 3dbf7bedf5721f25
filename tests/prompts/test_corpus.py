"""The corpus' cases about prompts: what three APIs say, rendered."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from families import registry
from families.family import Family
from prompts.prompter import Prompter
from protocols.registry import APIS
from tests.prompts.models import KEEPING
from tests.prompts.played import faithful, heard, results
from turns.blocks import Message, Reasoning, Text, ToolCall, ToolResult
from turns.turn import Thinking, Tool, Turn

ROOT = Path(__file__).resolve().parents[2]
CORPUS = Path(os.environ.get("TREADLE_CORPUS", ROOT.parent / "shared" / "corpus"))
API = {"anthropic.messages": "messages", "openai.chat": "chat", "openai.responses": "responses"}
CASES = [
    "an-billing-header-prefix",
    "an-inline-system-append-only",
    "an-system-role-in-messages",
    "an-thinking-disabled-honoured",
    "an-thinking-empty-signed",
    "an-thinking-replay-in-tool-loop",
    "an-tool-result-is-error",
    "an-unknown-fields",
    "ch-history-shapes",
    "re-custom-tool-history",
    "re-custom-tool",
    "re-foreign-tool-types",
    "rx-inject-think-in-user",
    "rx-inject-tool-result",
    "rx-tool-key-order",
]
OPEN = "<|im_start|>assistant\n"


@pytest.fixture(scope="module")
def thinker(loaded: Callable[[Family], Prompter]) -> Prompter:
    """The family of most cases: it reasons, and calls as Qwen3-Coder does."""
    return loaded(registry.get("qwen3_5"))


def case(name: str) -> dict[str, Any]:
    path = CORPUS / "protocol_cases" / f"{name}.json"
    if not path.is_file():
        pytest.skip(f"the corpus is not at {CORPUS}: set TREADLE_CORPUS")
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def decoded(found: dict[str, Any]) -> list[Turn]:
    """The requests of a case, in whichever form it has them."""
    request = found["request"]
    bodies = request.get("pair") or request.get("each") or [request.get("body") or request]
    render = "messages" if "max_tokens" in bodies[0] else "chat"
    api = APIS[API.get(found["api"], render)]
    return [api.decode(json.dumps(body).encode(), {}, turn_id="t") for body in bodies]


class Rendered:
    """The requests of a case as prompts and as texts."""

    def __init__(self, prompter: Prompter, turns: list[Turn]) -> None:
        self.prompter = prompter
        self.turns = turns
        self.ids = [prompter.prepare(turn).ids for turn in turns]
        self.texts = [prompter.render(turn) for turn in turns]

    def begins(self) -> bool:
        """Whether the second prompt begins with the history of the first."""
        history = self.ids[0][: self.prompter.prepare(self.turns[0]).reply_at]
        return self.ids[1][: len(history)] == history

    def controls(self, turn: Turn) -> list[int]:
        special = self.prompter.tokenizer.special
        return [number for number in self.prompter.prepare(turn).ids if number in special]


def ordered(text: str, words: list[str]) -> bool:
    places = [text.find(word) for word in words]
    return -1 not in places and places == sorted(places)


RULES: dict[str, Callable[[Rendered, Any], bool]] = {
    "prompts_equal": lambda got, _: len(set(got.texts)) == 1,
    # of the shapes of this case three are the same message written in three ways
    "content_null_equals_absent_equals_empty_in_prompt": lambda got, _: (
        len(set(got.texts[1:4])) == 1
    ),
    "same_bytes_same_prompt": lambda got, _: got.ids == Rendered(got.prompter, got.turns).ids,
    "prompt_contains": lambda got, value: all(value in text for text in got.texts),
    "prompt_not_contains": lambda got, value: not any(value in text for text in got.texts),
    "prompt_contains_once": lambda got, value: got.texts[0].count(value) == 1,
    "prompt_contains_in_order": lambda got, value: ordered(got.texts[0], value),
    "prompt_a_ends_with": lambda got, value: got.texts[0].endswith(value),
    "prompt_b_extends_history_of_a": lambda got, _: got.begins(),
    "prompt_contains_as_reasoning": lambda got, _: (
        "<think>\nNeed the outlook.\n</think>" in got.texts[0]
    ),
    "prompt_marks_error": lambda got, _: "Error: timeout" in got.texts[0],
    "control_tokens_only_from_template": lambda got, _: (
        got.controls(got.turns[0]) == got.controls(_harmless(got.turns[0]))
    ),
    "tool_rendered_to_model": lambda got, _: got.turns[0].tools[0].name in got.texts[0],
    "namespace_members_callable": lambda got, _: (
        f"<name>{got.turns[0].tools[-1].name}<" in got.texts[0]
    ),
    "template_ok_with_system_not_first": lambda got, _: bool(got.texts[0]),
}


@pytest.mark.parametrize("name", CASES)
def test_case_holds(thinker: Prompter, name: str) -> None:
    found = case(name)
    got = Rendered(thinker, decoded(found))
    rules = [
        rule
        for rule in found["expected"]
        if rule["p"] in RULES and rule.get("strength") != "desired"
    ]
    assert rules
    assert not [rule for rule in rules if not RULES[rule["p"]](got, rule.get("value"))]


def _harmless(turn: Turn) -> Turn:
    """The same turn, all that users and tools say being harmless."""
    messages = msgspec.json.encode(turn.messages).decode()
    for word in ("<", ">", "|"):
        messages = messages.replace(word, "-")
    return msgspec.structs.replace(
        turn, messages=msgspec.json.decode(messages, type=tuple[Message, ...])
    )


def test_arguments_text_is_stable(keeping: Prompter) -> None:
    found = case("rx-arguments-text-stable")
    asked = Turn("t", "chat", "m", (Message("user", (Text("go"),)),), tools=(Tool("save"),))
    prompt = keeping.prepare(asked)
    output = keeping.tokenizer.encode(found["request"]["turn1_output"], special=True)
    reply = heard(keeping, asked, prompt, output)
    history = (*asked.messages, faithful(reply), *results(reply, "saved"))
    text = keeping.render(Turn("t", "chat", "m", history, tools=asked.tools))
    (rule,) = found["expected"]
    assert rule["value"] in text


@pytest.mark.parametrize("name", ["rx-glue-newline", "rx-turn2-extends-turn1"])
@pytest.mark.parametrize("api", ["messages", "responses", "chat"])
def test_second_turn_extends_the_first(thinker: Prompter, name: str, api: Any) -> None:
    """Without any ledger: the template writes the history as the model wrote it."""
    found = case(name)
    said = found["request"].get("turn1_output") or "".join(found["engine_output"]["deltas"])
    thinking = Thinking("on" if "</think>" in said else "off")
    tools = decoded(case("an-system-role-in-messages"))[0].tools
    first = Turn(
        "t", api, "m", (Message("user", (Text("Weather in Bergen?"),)),), tools, thinking=thinking
    )
    prompt = thinker.prepare(first)
    output = thinker.tokenizer.encode(said, special=True)
    reply = heard(thinker, first, prompt, output)
    assert [type(block) for block in reply.blocks][-2:] == [Text, ToolCall]
    second = Turn(
        "t",
        api,
        "m",
        (*first.messages, faithful(reply), *results(reply, "rain")),
        tools,
        thinking=thinking,
    )
    text = thinker.render(second)
    assert "Checking.\n\n\n<tool_call>" not in text
    if thinking.mode == "on":
        whole = [*prompt.ids, *output]
        assert thinker.prepare(second).ids[: len(whole)] == whole


def test_interleaved_order_is_kept(keeping: Prompter) -> None:
    found = case("rx-interleaved-order-kept")
    blocks = tuple(
        Reasoning(rest[0])
        if kind == "reasoning"
        else ToolCall(f"c{at}", rest[0], json.dumps(rest[1]))
        for at, (kind, *rest) in enumerate(found["request"]["history"])
    )
    answers = tuple(ToolResult(b.id, (Text("x"),)) for b in blocks if isinstance(b, ToolCall))
    history = (
        Message("user", (Text("go"),)),
        Message("assistant", blocks),
        Message("tool", answers),
    )
    text = keeping.render(Turn("t", "messages", "m", history))
    after = text[text.index("go<|im_end|>") :]
    (rule,) = found["expected"]
    assert ordered(after, rule["value"])


@pytest.mark.parametrize("name", ["qwen3", "deepseek_r1"])
def test_plain_reply_drops_old_reasoning(loaded: Callable[[Family], Prompter], name: str) -> None:
    case("rx-plain-reply-drops-old-reasoning")
    prompter = loaded(registry.get(name))
    history = (
        Message("user", (Text("a"),)),
        Message("assistant", (Reasoning("old thought"), Text("b"))),
        Message("user", (Text("c"),)),
    )
    assert "old thought" not in prompter.render(Turn("t", "chat", "m", history))
    kept = loaded(KEEPING)
    assert "old thought" in kept.render(Turn("t", "chat", "m", history))


def test_reasoning_field_names_render_alike(thinker: Prompter) -> None:
    found = case("ch-reasoning-field-names")
    base = found["request"]["turns"][0]
    texts = set()
    for field in ("reasoning", "reasoning_content"):
        history = [
            *base["messages"],
            {
                "role": "assistant",
                "content": None,
                field: "r",
                "tool_calls": [
                    {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
                ],
            },
            {"role": "tool", "tool_call_id": "c", "content": "x"},
        ]
        body = json.dumps(base | {"messages": history}).encode()
        texts.add(thinker.render(APIS["chat"].decode(body, {}, turn_id="t")))
    assert len(texts) == 1
    assert "<think>\nr\n</think>" in texts.pop()

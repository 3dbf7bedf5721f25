"""prompt(n) + output(n) is the beginning of prompt(n + 1), whoever carried the reply in between."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from json import dumps
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from families import registry
from families.family import Family
from parsers import grammars
from prompts.prompter import Prompter
from tests.prompts.models import KEEPING
from tests.prompts.played import Client, Said, chatty, faithful, forgetful, heard, results, spoken
from tests.prompts.turns_made import FORECAST, system, turn, user
from turns.blocks import Message, Reasoning, Text, ToolCall
from turns.turn import Thinking, Tool

WORDS = st.sampled_from(
    [
        "Look it up.",
        "naïve 🚀",
        "a\n\nb",
        "x < y",
        "</think>",
        "<tool_call>",
        "1.0",
        "<|im_end|>",
        "{}",
        "ok",
    ]
)
VALUES = st.recursive(
    WORDS
    | st.integers(-(2**53), 2**53)
    | st.booleans()
    | st.none()
    | st.sampled_from([1.5, 1.0, 0.1]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(WORDS, inner, max_size=2),
    max_leaves=4,
)
ANY = Tool("any", "Takes anything", {"type": "object", "properties": {"a": {}, "b": {}}})
ARGUMENTS = st.fixed_dictionaries({}, optional={"a": VALUES, "b": VALUES})


@st.composite
def replies(draw: st.DrawFn) -> list[Said]:
    """What a model may say: any order of reasoning, text and calls."""
    kinds = draw(st.lists(st.sampled_from("rtc"), min_size=1, max_size=5))
    said: list[Said] = []
    for kind in kinds:
        if kind == "c":
            said.append(ToolCall("", "any", dumps(draw(ARGUMENTS), ensure_ascii=False)))
        elif said and type(said[-1]) is (Reasoning if kind == "r" else Text):
            continue
        else:
            said.append((Reasoning if kind == "r" else Text)(draw(WORDS)))
    return said


class Session:
    """Plays turns and holds what the ledger remembers."""

    def __init__(
        self, prompter: Prompter, client: Client, *, seed: int = 0, **fields: object
    ) -> None:
        self.prompter = prompter
        self.client = client
        self.fields = {
            "tools": (FORECAST, ANY),
            "api": "chat" if client is chatty else "messages",
        } | fields
        self.random = Random(seed)
        self.ledger: dict[str, list[int]] = {}
        self.history: list[Message] = [system("S"), user("go")]
        self.whole: list[int] = []

    def turn(self, said: Sequence[Said]) -> None:
        """One turn; afterwards `prompt` is what it was asked and `whole` that and the answer."""
        asked = turn(*self.history, **self.fields)
        plan = self.prompter.plan(asked)
        self.prompt = self.prompter.finish(plan, self.ledger)
        output = spoken(self.prompter, self.prompt, said, self.random)
        self.whole = [*self.prompt.ids, *output]
        reply = heard(self.prompter, asked, self.prompt, output)
        assert reply.stop in ("end", "tool_use")
        self.ledger |= self.prompter.entries(plan, self.prompt, reply, output)
        self.history += [self.client(reply), *results(reply, "rain <think>")]

    def next(self) -> list[int]:
        plan = self.prompter.plan(turn(*self.history, **self.fields))
        return self.prompter.finish(plan, self.ledger).ids


def is_prefix(ids: Sequence[int], of: Sequence[int]) -> bool:
    return list(of[: len(ids)]) == list(ids)


@settings(max_examples=60)
@given(said=st.lists(replies(), min_size=1, max_size=4), seed=st.integers(0, 9))
@pytest.mark.parametrize("client", [faithful, forgetful, chatty])
def test_tokens_come_back_as_they_were_produced(
    keeping: Prompter, client: Client, said: list[list[Said]], seed: int
) -> None:
    session = Session(keeping, client, seed=seed)
    for blocks in said:
        session.turn(blocks)
        assert is_prefix(session.whole, session.next())


@settings(max_examples=40)
@given(said=st.lists(replies(), min_size=1, max_size=3))
def test_within_a_tool_loop_too(prompter: Prompter, said: list[list[Said]]) -> None:
    session = Session(prompter, faithful)
    for blocks in said:
        looping = [*blocks, ToolCall("", "any", "{}")]
        session.turn(looping)
        assert is_prefix(session.whole, session.next())


SAID: list[list[Said]] = [
    [
        Reasoning("secret"),
        Text("Checking."),
        ToolCall("", "forecast", '{"place": "Bergen", "days": 2}'),
    ],
    [Reasoning("more"), Text("It rains.")],
    [Text("Bye.")],
]


@pytest.mark.parametrize("client", [faithful, forgetful, chatty])
@pytest.mark.parametrize("name", registry.known())
def test_each_family_replays_what_it_keeps(
    loaded: Callable[[Family], Prompter], name: str, client: Client
) -> None:
    family = registry.get(name)
    prompter = loaded(family)
    session = Session(prompter, client)
    reasons = family.thinking.default != "none"
    for blocks in [*SAID[:1] * 2, *SAID]:
        speakable = [block for block in blocks if sayable(prompter, block, reasons=reasons)]
        session.turn(speakable)
        following = session.next()
        if family.replay.keep == "never" and reasons:
            plain = prompter.prepare(turn(*session.history, **session.fields))
            assert following == plain.ids
        elif family.replay.keep == "always" or not reasons or calls(speakable):
            assert is_prefix(session.whole, following)


def calls(blocks: Sequence[Said]) -> bool:
    return any(isinstance(block, ToolCall) for block in blocks)


def sayable(prompter: Prompter, block: Said, *, reasons: bool) -> bool:
    """Whether the family can say such a block at all."""
    grammar = grammars.get(prompter.family.grammar)
    match block:
        case Reasoning():
            return reasons and grammar.reasoning is not None
        case ToolCall():
            return grammar.calls is not None and grammar.calls.spelling is not None
        case Text():
            return True


def test_policy_that_drops_is_the_templates_own_rendering(prompter: Prompter) -> None:
    session = Session(prompter, faithful)
    for blocks in SAID:
        session.turn(blocks)
    remembered = session.next()
    plain = prompter.prepare(turn(*session.history, **session.fields))
    assert remembered == plain.ids
    assert "secret" not in prompter.tokenizer.decode(remembered)


def test_altered_reply_is_rendered_from_what_the_client_sent(keeping: Prompter) -> None:
    session = Session(keeping, faithful)
    session.turn(SAID[0])
    reply = session.history[2]
    session.history[2] = replace(reply, blocks=(Reasoning("other"), *reply.blocks[1:]))
    text = keeping.tokenizer.decode(session.next())
    assert "other" in text
    assert "secret" not in text


def test_reasoning_that_the_client_lost_is_restored(keeping: Prompter) -> None:
    session = Session(keeping, forgetful)
    session.turn(SAID[0])
    assert "secret" in keeping.tokenizer.decode(session.next())
    session.ledger.clear()
    assert "secret" not in keeping.tokenizer.decode(session.next())


def test_thinking_may_be_switched_in_the_middle(keeping: Prompter) -> None:
    session = Session(keeping, forgetful, thinking=Thinking("off"))
    session.turn([Text("Bye.")])
    session.fields["thinking"] = Thinking("on")
    assert is_prefix(session.whole, session.next())


def test_same_words_in_both_modes_are_kept_apart(keeping: Prompter) -> None:
    quiet = Session(keeping, forgetful, thinking=Thinking("off"))
    loud = Session(keeping, forgetful, thinking=Thinking("on"), seed=1)
    loud.ledger = quiet.ledger
    quiet.turn([Text("Bye.")])
    loud.turn([Reasoning("hm"), Text("Bye.")])
    assert is_prefix(quiet.whole, quiet.next())
    assert is_prefix(loud.whole, loud.next())


@pytest.mark.parametrize("reordered", [True, False])
def test_order_counts_where_the_api_knows_it(keeping: Prompter, reordered: bool) -> None:
    session = Session(keeping, faithful)
    session.turn([Text("Checking."), ToolCall("", "forecast", '{"place": "A"}')])
    reply = session.history[2]
    if reordered:
        session.history[2] = replace(reply, blocks=reply.blocks[::-1])
    assert is_prefix(session.whole, session.next()) is not reordered


def test_prompt_says_how_many_replies_the_ledger_gave(keeping: Prompter) -> None:
    session = Session(keeping, faithful)
    for blocks in SAID:
        session.turn(blocks)
    plan = keeping.plan(turn(*session.history, **session.fields))
    assert keeping.finish(plan, session.ledger).spliced == 3
    assert keeping.finish(plan).spliced == 0
    assert len(plan.keys) == 4  # two of them for the reply that reasoned nothing


def test_tail_is_the_end_of_the_text_whatever_was_spliced(keeping: Prompter) -> None:
    session = Session(keeping, faithful)
    session.turn(SAID[0])
    plan = keeping.plan(turn(*session.history, **session.fields))
    prompt = keeping.finish(plan, session.ledger)
    assert keeping.tokenizer.decode(prompt.ids).endswith(prompt.tail)
    assert len(prompt.tail) == 256


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"stop": "stop_sequence"}, id="stop string"),
        pytest.param({"stop": None}, id="never ended"),
        pytest.param({"blocks": ()}, id="nothing said"),
    ],
)
def test_what_will_not_come_back_is_not_remembered(
    keeping: Prompter, change: dict[str, object]
) -> None:
    asked = turn(user("go"))
    plan = keeping.plan(asked)
    prompt = keeping.finish(plan)
    output = spoken(keeping, prompt, [Text("ok")], Random(0))
    reply = heard(keeping, asked, prompt, output)
    assert keeping.entries(plan, prompt, reply, output)
    assert not keeping.entries(plan, prompt, replace(reply, **change), output)
    assert not keeping.entries(plan, prompt, reply, [])


def test_models_do_not_share_what_they_remember(keeping: Prompter, qwen3: Prompter) -> None:
    asked = turn(user("go"), Message("assistant", (Text("ok"),)), user("on"))
    other = Prompter(
        qwen3.tokenizer, {"default": keeping._voices["default"].template}, KEEPING, keeping.settings
    )
    assert not set(keeping.plan(asked).keys) & set(other.plan(asked).keys)

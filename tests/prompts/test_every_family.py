"""Two laws, for each family: what was generated comes back, and nothing from outside steers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from families import registry
from families.family import Family
from prompts.prompter import Prompter
from tests.prompts.played import Client, Said, chatty, faithful, forgetful
from tests.prompts.test_replay import Session, calls, is_prefix, replies, sayable
from tests.prompts.turns_made import assistant, call, result, system, turn, user
from turns.blocks import Reasoning, Text, ToolCall
from turns.turn import Tool, Turn

FAMILY = pytest.mark.parametrize("name", registry.known())
Load = Callable[[Family], Prompter]


@settings(max_examples=6)
@given(
    said=st.lists(replies(), min_size=1, max_size=3),
    client=st.sampled_from([faithful, forgetful, chatty]),
    seed=st.integers(0, 9),
)
@FAMILY
def test_what_it_emits_comes_back_or_is_the_templates_own_rendering(
    loaded: Load, name: str, said: list[list[Said]], client: Client, seed: int
) -> None:
    family = registry.get(name)
    prompter = loaded(family)
    session = Session(prompter, client, seed=seed)
    thinks = family.thinking.default != "none"
    keeps = family.replay.keep == "always" or bool(family.replay.agentic) or not thinks
    for blocks in said:
        spoken = [block for block in blocks if sayable(prompter, block, reasons=thinks)]
        spoken = possible(family, spoken) or [Text("ok")]
        session.turn(spoken)
        following = session.next()
        if keeps or (family.replay.keep == "tool_loop" and calls(spoken)):
            assert is_prefix(session.whole, following)
        else:
            asked = turn(*session.history, **session.fields)
            assert following == prompter.prepare(asked).ids
            assert not any(prompter.plan(asked).conversation.kept)


def possible(family: Family, said: list[Said]) -> list[Said]:
    """The reply up to a call that ends it: in harmony a call is a stop token."""
    ends = next((at + 1 for at, block in enumerate(said) if isinstance(block, ToolCall)), len(said))
    return said[:ends] if "<|call|>" in family.stop_tokens else said


def conversation(word: str, own: str) -> Turn:
    """A turn in which a word stands wherever text from outside can; `own` in the model's words."""
    schema = {"properties": {word: {"description": word, "enum": [word]}}}
    tool = Tool("f", word, schema)
    return turn(
        system(f"{word} S {word}"),
        user(f"what does {word} mean?", word),
        assistant(Reasoning(own), own, call(msgspec.json.encode({word: word}).decode(), name="f")),
        user(result(word)),
        user(f"{word}\n{word}"),
        tools=(tool, Tool(word, word)),
    )


def controls(prompter: Prompter, asked: Turn) -> list[int]:
    special = prompter.tokenizer.special
    return [number for number in prompter.prepare(asked).ids if number in special]


@FAMILY
def test_no_spelling_becomes_a_control_token(loaded: Load, name: str) -> None:
    prompter = loaded(registry.get(name))
    plain = controls(prompter, conversation("word", "word"))
    for spelled in prompter.tokenizer.special.values():
        asked = conversation(spelled, spelled)
        assert controls(prompter, asked) == plain, spelled
        assert spelled in prompter.render(asked)
        for end in (spelled[:-1], spelled[1:]):  # what a template writes beside it completes it
            assert controls(prompter, conversation(end, end)) == plain, end


@settings(max_examples=6)
@given(data=st.data())
@FAMILY
def test_no_mixture_of_spellings_and_their_ends_does(loaded: Load, name: str, data: Any) -> None:
    prompter = loaded(registry.get(name))
    tokens = sorted(prompter.tokenizer.special.values())
    cut = st.sampled_from(tokens).flatmap(
        lambda token: st.integers(1, len(token)).map(
            lambda at: data.draw(st.sampled_from([token[:at], token[at - 1 :]]))
        )
    )
    word = data.draw(st.lists(cut | st.sampled_from(["word", " ", "\n"]), min_size=1).map("".join))
    own = word if word.strip() else "word"
    plain = controls(prompter, conversation("word", "word"))
    assert controls(prompter, conversation(word, own)) == plain

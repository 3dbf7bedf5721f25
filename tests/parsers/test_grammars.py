from __future__ import annotations

import pytest

from families import registry
from parsers import grammars
from parsers.compiled import compiled
from parsers.grammar import Grammar
from parsers.write import write
from turns.blocks import Text, ToolCall

KNOWN = grammars.known()


@pytest.mark.parametrize("grammar", KNOWN.values(), ids=KNOWN)
def test_every_state_leads_to_states_that_exist(grammar: Grammar) -> None:
    table = compiled(grammar, ids=False, calls=True)
    assert table.start.lexicon
    names = {name for name, _ in grammar.states}
    assert len(names) == len(grammar.states)
    assert {state for _, state in grammar.tails} <= names


@pytest.mark.parametrize("grammar", KNOWN.values(), ids=KNOWN)
def test_every_state_can_be_reached(grammar: Grammar) -> None:
    states = dict(grammar.states)
    seen: set[str] = set()
    todo = [grammar.start, "text", *(state for _, state in grammar.tails)]
    while todo:
        name = todo.pop()
        if name in seen:
            continue
        seen.add(name)
        state = states[name]
        todo += [go.to for _, go in state.on if go.to]
        todo += [route.to for _, go in state.on for route in go.routes]
        todo += [state.otherwise]
        if state.reads == "reader":
            todo += [state.then, state.lost]
    assert seen >= states.keys()


@pytest.mark.parametrize("family", registry.known().values(), ids=lambda family: family.name)
def test_every_family_has_its_grammar(family) -> None:
    assert grammars.get(family.grammar, special=family.special_tokens).special


def test_an_unknown_name_is_answered_with_what_comes_near() -> None:
    with pytest.raises(LookupError, match=r"choose one of: .*qwen3_coder"):
        grammars.get("qwen3_code")


def test_a_pair_takes_reasoning_from_the_first_and_calls_from_the_second() -> None:
    pair = grammars.get("think+hermes")
    assert pair.reasoning == KNOWN["think"].reasoning
    assert pair.calls == KNOWN["hermes"].calls
    assert grammars.get("+hermes").reasoning is None
    assert grammars.get("think+").calls is None


def test_one_syntax_cannot_be_taken_apart() -> None:
    with pytest.raises(ValueError, match="cannot be combined"):
        grammars.get("gpt_oss+hermes")


def test_a_grammar_without_calls_cannot_write_one() -> None:
    with pytest.raises(ValueError, match="knows no tool calls"):
        write(grammars.get("think"), [ToolCall("", "f", "{}")])


def test_arguments_that_are_no_object_cannot_be_written() -> None:
    with pytest.raises(ValueError, match="no JSON object"):
        write(grammars.get("qwen3_coder"), [ToolCall("", "f", "[1]")])


def test_reasoning_that_the_prompt_opened_is_closed_before_text() -> None:
    written = write(grammars.get("think"), [Text("hi")], tail="<think>\n")
    assert written == "\n</think>\n\nhi"

"""Constraints as data, and, where xgrammar is installed, as the grammars it makes of them."""

from __future__ import annotations

import importlib.util
import json
from typing import Any

import pytest

from parsers import grammars
from parsers.constraints import constraint
from parsers.write import write
from tests.parsers.outputs import parse, plain
from turns.blocks import Reasoning, Text, ToolCall
from turns.reply import fold
from turns.turn import OutputFormat, Tool, ToolChoice

NAMES = sorted(grammars.known())
CALLING = [name for name in NAMES if grammars.get(name).calls]
PLACE = {"type": "object", "properties": {"place": {"type": "string"}, "days": {"type": "integer"}}}
TOOLS = (
    Tool("forecast", parameters={**PLACE, "required": ["place"]}),
    Tool("clock", parameters={"type": "object", "properties": {}}),
)
STRICT = tuple(Tool(tool.name, parameters=tool.parameters, strict=True) for tool in TOOLS)
NUMBER = {
    "type": "object",
    "properties": {"a": {"type": "integer"}},
    "required": ["a"],
    "additionalProperties": False,
}
AUTO, TEXT = ToolChoice(), OutputFormat()
FORECAST = ToolCall("", "forecast", '{"place": "Lima", "days": 3}')
CLOCK = ToolCall("", "clock", "{}")
ABSENT = pytest.mark.skipif(
    importlib.util.find_spec("xgrammar") is None, reason="no xgrammar here: it comes with vLLM"
)


def xgrammar(test: Any) -> Any:
    """Runs with vLLM's tests, since xgrammar comes with it."""
    return pytest.mark.vllm(ABSENT(test))


def tag(
    name: str, tools: tuple[Tool, ...], choice: ToolChoice = AUTO, output: OutputFormat = TEXT
) -> dict[str, Any] | None:
    found = constraint(grammars.get(name), tools, choice, output, tail="")
    if found is None:
        return None
    assert list(found) == ["structural_tag"]
    decoded = json.loads(found["structural_tag"])
    assert decoded["type"] == "structural_tag"
    return decoded


def said(name: str, *blocks: Text | ToolCall) -> str:
    """An output of the grammar: a thought where it has them, then the blocks."""
    grammar = grammars.get(name)
    before: list[Reasoning | Text] = [Reasoning("hm")] if grammar.reasoning else []
    if grammar.text[0] and not grammar.whole and not isinstance(blocks[0], Text):
        before.append(Text(""))  # the answer has its place, also an empty one
    # The mark that ends a message is the engine's stop token there.
    return (write(grammar, [*before, *blocks]) + grammar.last).removesuffix("<|end|>")


def accepts(found: dict[str, Any] | None, output: str) -> bool:
    from xgrammar import Grammar  # noqa: PLC0415 - optional
    from xgrammar.testing import _is_grammar_accept_string  # noqa: PLC0415

    return _is_grammar_accept_string(Grammar.from_structural_tag(found), output)


@pytest.mark.parametrize("name", NAMES)
def test_a_request_that_binds_nothing_leaves_the_engine_free(name: str) -> None:
    assert tag(name, TOOLS) is None
    assert tag(name, ()) is None
    assert tag(name, (), ToolChoice("none")) is None


@xgrammar
@pytest.mark.parametrize("name", CALLING)
def test_required_lets_through_calls_and_nothing_else(name: str) -> None:
    required = tag(name, TOOLS, ToolChoice("required"))
    assert accepts(required, said(name, FORECAST))
    assert accepts(required, said(name, CLOCK, FORECAST))
    assert not accepts(required, said(name, Text("hi")))


@xgrammar
@pytest.mark.parametrize("name", CALLING)
def test_one_call_only_when_calls_are_not_parallel(name: str) -> None:
    one = tag(name, TOOLS, ToolChoice("required", parallel=False))
    assert accepts(one, said(name, FORECAST))
    assert not accepts(one, said(name, CLOCK, FORECAST))


@xgrammar
@pytest.mark.parametrize("name", CALLING)
def test_a_named_tool_is_the_only_one(name: str) -> None:
    named = tag(name, TOOLS, ToolChoice("named", name="clock"))
    assert accepts(named, said(name, CLOCK))
    assert not accepts(named, said(name, FORECAST))


@xgrammar
@pytest.mark.parametrize("name", CALLING)
def test_none_forbids_calls_where_they_have_marks(name: str) -> None:
    none = tag(name, TOOLS, ToolChoice("none"))
    if none is None:
        assert not grammars.get(name).calls.spelling.opener  # bare JSON: the parser makes it text
        return
    assert accepts(none, said(name, Text("hi")))
    assert not accepts(none, said(name, FORECAST))


@xgrammar
@pytest.mark.parametrize("name", CALLING)
def test_strict_tools_bind_the_calls_and_leave_the_text_free(name: str) -> None:
    strict = tag(name, STRICT)
    assert accepts(strict, said(name, Text("hi")))
    assert accepts(strict, said(name, FORECAST))


@xgrammar
@pytest.mark.parametrize("name", NAMES)
def test_an_answer_in_a_schema_comes_behind_a_free_thought(name: str) -> None:
    bound = tag(name, (), AUTO, OutputFormat("json_schema", schema=NUMBER))
    assert accepts(bound, said(name, Text('{"a": 1}')))
    assert not accepts(bound, said(name, Text('{"a": "x"}')))


@xgrammar
@pytest.mark.parametrize("name", CALLING)
def test_a_bound_answer_may_be_a_call_when_tools_are_offered(name: str) -> None:
    bound = tag(name, TOOLS, AUTO, OutputFormat("json_object"))
    assert accepts(bound, said(name, Text('{"b": [1]}')))
    assert accepts(bound, said(name, FORECAST))


@pytest.mark.parametrize("name", CALLING)
def test_what_a_constraint_spells_is_what_the_parser_reads(name: str) -> None:
    """The spelling is shared, so a forced call is dispatched from the same events as a free one."""
    reply = fold(parse(grammars.get(name), plain(list(said(name, FORECAST))), tools=TOOLS))
    calls = [block for block in reply.blocks if isinstance(block, ToolCall)]
    assert [(call.name, json.loads(call.arguments)) for call in calls] == [
        ("forecast", {"place": "Lima", "days": 3})
    ]
    assert reply.stop == "tool_use"


@pytest.mark.parametrize(
    ("tail", "opening"),
    [
        pytest.param("<|im_start|>assistant\n<think>\n", "", id="open-in-the-prompt"),
        pytest.param("<|im_start|>assistant\n", "<think>", id="not-begun"),
        pytest.param("<think>\n\n</think>\n\n", None, id="closed-in-the-prompt"),
    ],
)
def test_the_prompt_says_where_the_thought_is(tail: str, opening: str | None) -> None:
    output = OutputFormat("json_object")
    found = constraint(grammars.get("hermes"), (), AUTO, output, tail=tail)
    assert found is not None
    text = found["structural_tag"]
    assert ('"</think>"' in text) == (opening is not None)
    if opening is not None:
        assert f'"begin":"{opening}"' in text


def test_a_custom_tool_is_a_function_of_one_string() -> None:
    found = tag("hermes", (Tool("patch", kind="custom"),), ToolChoice("required"))
    assert '"input"' in json.dumps(found)


def test_elements_are_spelled_one_by_one_where_xgrammar_has_no_style() -> None:
    schema = {
        "type": "object",
        "properties": {
            "unit": {"type": "string", "enum": ["c", "f"]},
            "where": {"$ref": "#/$defs/P"},
        },
        "$defs": {"P": {"type": "object"}},
        "required": ["unit"],
    }
    text = json.dumps(tag("step3", (Tool("f", parameters=schema),), ToolChoice("required")))
    assert '"begin": "<steptml:parameter name=\\"unit\\">"' in text
    assert '"$defs"' in text
    assert text.count('"optional"') == 1

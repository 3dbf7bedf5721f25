from __future__ import annotations

from typing import Any

import msgspec
import pytest

from actors.engines.scripted.reply import REFUSAL, Filler, Plan, plan
from actors.engines.scripted.scenario import Delta, load, read
from actors.engines.scripted.scene import look
from tests.actors.engines.scripted.toy import answered, ask, called, tool
from turns.blocks import Reasoning, Text, ToolCall
from turns.turn import OutputFormat, Tool, ToolChoice, Turn

BASH = tool("bash", ["command"], command={"type": "string"})
COMMAND = '{"command":"echo hi-from-tool"}'


def reply(items: list[Any], turn: Turn | None = None, **rule: Any) -> Plan:
    return plan(read({"rules": [{"reply": items, **rule}]}), look(turn or ask("do it")))


@pytest.mark.parametrize(
    ("item", "part"),
    [
        pytest.param({"think": "hm {step}"}, Reasoning("hm 0"), id="think"),
        pytest.param({"text": "{last_user}"}, Text("do it"), id="text"),
        pytest.param({"lorem": 7}, Filler(7), id="lorem"),
        pytest.param({"lorem": {"tokens": 7, "as": "think"}}, Filler(7, True), id="lorem-thinking"),
        pytest.param({"json": {"n": "{n}"}}, Text('{"n":1}'), id="json"),
        pytest.param({"json": "auto"}, Text("{}"), id="json-auto"),
        pytest.param({"refuse": True}, Text(REFUSAL), id="refuse"),
        pytest.param({"refuse": "No {last_user}."}, Text("No do it."), id="refuse-words"),
    ],
)
def test_pieces(item: dict[str, Any], part: Any) -> None:
    assert reply([item]).parts == (part,)


@pytest.mark.parametrize(
    ("call", "made"),
    [
        pytest.param("auto", ToolCall("", "bash", COMMAND), id="auto"),
        pytest.param({"tool": "bash"}, ToolCall("", "bash", COMMAND), id="named"),
        pytest.param({"arguments": {"a": "{n}"}}, ToolCall("", "bash", '{"a":1}'), id="arguments"),
        pytest.param({"arguments": '{"a": '}, ToolCall("", "bash", '{"a": '), id="as-it-is"),
        pytest.param({"tool": "missing"}, ToolCall("", "missing", "{}"), id="undeclared"),
        pytest.param(
            {"tool": "patch", "input": "do {n}"},
            ToolCall("", "patch", "do 1", "custom", "ns"),
            id="custom",
        ),
    ],
)
def test_calls(call: Any, made: ToolCall) -> None:
    turn = ask("do it", tools=[BASH, Tool("patch", kind="custom", namespace="ns")])
    assert reply([{"call": call}], turn).parts == (made,)


def test_auto_without_tools_calls_nothing() -> None:
    assert reply([{"call": "auto"}, {"text": "x"}]).parts == (Text("x"),)


def test_repeat_counts() -> None:
    items = [{"think": "{n}"}, {"call": {"tool": "t", "arguments": {"i": "{n}"}}}]
    parts = reply([{"repeat": {"times": 2, "reply": items}}]).parts
    assert [part.text for part in parts if isinstance(part, Reasoning)] == ["1", "2"]
    assert [part.arguments for part in parts if isinstance(part, ToolCall)] == [
        '{"i":1}',
        '{"i":2}',
    ]


def test_numbers_may_come_from_the_prompt() -> None:
    when = {"user_matches": r"say (?P<count>\w+)"}
    rules = [{"when": when, "reply": [{"lorem": "{count}"}]}, {"reply": []}]
    scenario = read({"rules": rules})
    assert plan(scenario, look(ask("say 12 words"))).parts == (Filler(12),)
    with pytest.raises(ValueError, match="invalid literal"):
        plan(scenario, look(ask("say many words")))


def test_model_output_stands_as_it_is() -> None:
    assert reply([{"raw": "<a>{n}"}]).raw == "<a>{n}"
    assert reply([{"endless": "x"}]).endless == "x"
    deltas = ["a", {"text": "b"}, {"ids": [1]}]
    assert reply([{"deltas": deltas}]).pieces == (Delta("a"), Delta("b"), Delta(ids=[1]))


def default(turn: Turn) -> list[Any]:
    return list(plan(load(), look(turn)).parts)


def test_by_default_a_tool_is_called_once_and_its_result_reported() -> None:
    think, call = default(ask("run it", tools=[BASH]))
    assert isinstance(think, Reasoning)
    assert call == ToolCall("", "bash", COMMAND)
    think, text = default(ask("run it", called(), answered("hi-from-tool"), tools=[BASH]))
    assert isinstance(think, Reasoning)
    assert "hi-from-tool" in text.text
    assert "FINAL-OK" in text.text


def test_by_default_nothing_is_called_without_tools() -> None:
    for turn in (ask("title?"), ask("title?", tools=[BASH], tool_choice=ToolChoice("none"))):
        assert [type(part) for part in default(turn)] == [Reasoning, Text]
        assert "FINAL-OK" not in default(turn)[1].text


def test_by_default_a_call_that_is_insisted_on_is_made_even_after_a_result() -> None:
    turn = ask("x", called(), answered("r"), tools=[BASH], tool_choice=ToolChoice("named", "bash"))
    assert default(turn)[-1] == ToolCall("", "bash", COMMAND)


def test_by_default_json_is_answered_where_json_is_asked_for() -> None:
    schema = {"properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
    (text,) = default(ask("x", output=OutputFormat("json_schema", schema)))
    assert msgspec.json.decode(text.text) == {"ok": False}


def test_the_seed_example_thinks_and_calls_the_calculator() -> None:
    says = "Think carefully about what 15 * 23 equals, then use the calculator to verify"
    calculator = tool("calculator", ["expression"], expression={"type": "string"})
    weather = tool("get_weather", ["city"], city={"type": "string"})
    think, call = default(ask(says, tools=[weather, calculator]))
    assert "15 * 23" in think.text
    assert call == ToolCall("", "calculator", '{"expression":"15 * 23"}')

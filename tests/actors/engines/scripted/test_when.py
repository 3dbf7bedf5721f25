from __future__ import annotations

from typing import Any

import msgspec
import pytest

from actors.engines.scripted.scene import look
from actors.engines.scripted.when import When, holds
from tests.actors.engines.scripted.toy import answered, ask, called, tool
from turns.blocks import Message, Text
from turns.turn import Hints, OutputFormat, Thinking, ToolChoice

TURN = ask(
    Message("system", (Text("You are terse"),)),
    "What is 15 * 23?",
    called(),
    answered("345 exactly"),
    tools=[tool("get_weather"), tool("calculator")],
    tool_choice=ToolChoice("required"),
    thinking=Thinking("on"),
    output=OutputFormat("json_schema"),
    hints=Hints(priority=5),
    session="s-1",
    template_kwargs={"style": "x"},
    echo={"metadata": {"case": "a", "user": "u"}},
)


@pytest.mark.parametrize(
    ("when", "true"),
    [
        pytest.param({}, True, id="nothing-asked"),
        pytest.param({"user_contains": "WHAT is"}, True, id="contains"),
        pytest.param({"user_contains": ["no", "15"]}, True, id="contains-any"),
        pytest.param({"user_contains": "345"}, False, id="results-are-not-said"),
        pytest.param({"user_matches": r"\d+ \* \d+"}, True, id="matches"),
        pytest.param({"user_matches": "^15"}, False, id="matches-not"),
        pytest.param({"result_contains": "exactly"}, True, id="result"),
        pytest.param({"result_matches": r"^\d{4}"}, False, id="result-not"),
        pytest.param({"system_contains": "terse"}, True, id="system"),
        pytest.param({"tool": "get_*"}, True, id="tool-glob"),
        pytest.param({"tool": ["bash", "calculator"]}, True, id="tool-any"),
        pytest.param({"tool": "bash"}, False, id="tool-not"),
        pytest.param({"tools": True}, True, id="tools"),
        pytest.param({"tools": False}, False, id="no-tools"),
        pytest.param({"tool_choice": ["required", "named"]}, True, id="choice"),
        pytest.param({"step": 1}, True, id="step"),
        pytest.param({"step": ">=2"}, False, id="step-from"),
        pytest.param({"step": "<= 1"}, True, id="step-to"),
        pytest.param({"step": "1-3"}, True, id="step-range"),
        pytest.param({"turn": "0"}, True, id="turn"),
        pytest.param({"model": "to*"}, True, id="model"),
        pytest.param({"api": "chat"}, False, id="api"),
        pytest.param({"session": "s-?"}, True, id="session"),
        pytest.param({"thinking": "on"}, True, id="thinking"),
        pytest.param({"output": "json_*"}, True, id="output"),
        pytest.param({"hints": {"priority": 5}}, True, id="hints"),
        pytest.param({"hints": {"priority": 4}}, False, id="hints-not"),
        pytest.param({"kwargs": {"style": "x"}}, True, id="kwargs"),
        pytest.param({"metadata": {"case": "a"}}, True, id="metadata"),
        pytest.param({"metadata": {"case": "b"}}, False, id="metadata-not"),
        pytest.param({"tools": True, "step": 7}, False, id="all-must-hold"),
    ],
)
def test_conditions(when: dict[str, Any], true: bool) -> None:
    assert (holds(msgspec.convert(when, When), look(TURN)) is not None) is true


def test_named_groups_are_caught() -> None:
    when = When(user_matches=r"(?P<a>\d+) \* (?P<b>\d+)", result_matches=r"(?P<c>x)?exactly")
    assert holds(when, look(TURN)) == {"a": "15", "b": "23", "c": ""}
    assert when.names() == {"a", "b", "c"}


@pytest.mark.parametrize("field", ["model", "hints", "metadata", "thinking", "tool"])
def test_nothing_is_known_without_a_conversation(field: str) -> None:
    value = {"hints": {}, "metadata": {}, "thinking": "on"}.get(field, "*")
    assert holds(msgspec.convert({field: value}, When), look(None)) is None


def test_a_request_without_metadata_has_none() -> None:
    assert holds(When(metadata={}), look(ask("x"))) is None


@pytest.mark.parametrize(
    ("when", "says"),
    [
        ({"user_matches": "("}, "user_matches is not a regular expression"),
        ({"step": "soon"}, "step is 'soon'"),
        ({"turn": ">=1-3"}, "turn is"),
        ({"stepp": 1}, "stepp"),
        ({"thinking": "maybe"}, "thinking"),
    ],
)
def test_what_makes_no_sense_is_refused(when: dict[str, Any], says: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=says):
        msgspec.convert(when, When)

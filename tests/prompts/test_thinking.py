from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from families.family import Family, Replay, ThinkingControls
from prompts.prompter import PromptSettings
from prompts.thinking import Controls, controls
from tests.prompts.models import QWEN3
from tests.prompts.turns_made import FORECAST, turn, user
from turns.turn import Thinking, Turn

EFFORTS = PromptSettings().efforts
ON, OFF = {"enable_thinking": True}, {"enable_thinking": False}
QUIET = replace(QWEN3, thinking=replace(QWEN3.thinking, default="off"))
DUMB = replace(QWEN3, thinking=ThinkingControls())
WORDS = replace(
    QWEN3,
    thinking=ThinkingControls(
        default="on",
        off={"effort": "none"},
        effort={"low": {"effort": "low"}, "high": {"effort": "high"}},
        budget_arg="budget",
    ),
    replay=Replay(keep="tool_loop", agentic={"truncate": False}),
)


def asked(thinking: Thinking, *, tools: bool = False, **own: Any) -> Turn:
    return turn(
        user("a"), thinking=thinking, tools=(FORECAST,) if tools else (), template_kwargs=own
    )


@pytest.mark.parametrize(
    ("family", "given", "expected"),
    [
        pytest.param(QWEN3, asked(Thinking()), Controls(True, ON), id="habit on"),
        pytest.param(QUIET, asked(Thinking()), Controls(False, OFF), id="habit off"),
        pytest.param(QUIET, asked(Thinking("on")), Controls(True, ON), id="asked for"),
        pytest.param(QUIET, asked(Thinking(), tools=True), Controls(True, ON), id="agentic turn"),
        pytest.param(
            QWEN3, asked(Thinking("off"), tools=True), Controls(False, OFF), id="off is off"
        ),
        pytest.param(
            QWEN3, asked(Thinking("off", "high", 99)), Controls(False, OFF), id="off beats effort"
        ),
        pytest.param(QWEN3, asked(Thinking(effort="none")), Controls(False, OFF), id="effort none"),
        pytest.param(
            QWEN3, asked(Thinking("on", budget=100)), Controls(True, ON, 100), id="budget"
        ),
        pytest.param(
            QWEN3, asked(Thinking("on", "low")), Controls(True, ON, 2048), id="effort as budget"
        ),
        pytest.param(
            QWEN3, asked(Thinking("on", "high")), Controls(True, ON, None), id="high is no limit"
        ),
        pytest.param(
            QWEN3, asked(Thinking("on", "low", 9)), Controls(True, ON, 9), id="budget beats effort"
        ),
        pytest.param(
            QWEN3, asked(Thinking("on", "cosmic")), Controls(True, ON), id="unknown effort"
        ),
        pytest.param(QWEN3, asked(Thinking(), **OFF), Controls(False, OFF), id="own argument off"),
        pytest.param(QUIET, asked(Thinking(), **ON), Controls(True, ON), id="own argument on"),
        pytest.param(
            QWEN3, asked(Thinking("off"), **ON), Controls(False, OFF), id="off beats own argument"
        ),
        pytest.param(
            QWEN3,
            asked(Thinking(), depth=3),
            Controls(True, {**ON, "depth": 3}),
            id="own argument passed on",
        ),
        pytest.param(
            DUMB,
            asked(Thinking("on", "low", 5), tools=True),
            Controls(None, {}),
            id="does not reason",
        ),
        pytest.param(
            WORDS,
            asked(Thinking("on", "low")),
            Controls(True, {"effort": "low"}),
            id="template takes the word",
        ),
        pytest.param(
            WORDS,
            asked(Thinking("on", "medium")),
            Controls(True, {"budget": 8192}, 8192),
            id="template takes a budget",
        ),
        pytest.param(
            WORDS,
            asked(Thinking(), tools=True),
            Controls(True, {"truncate": False}),
            id="agentic arguments",
        ),
        pytest.param(
            WORDS,
            asked(Thinking(), tools=True, truncate=True),
            Controls(True, {"truncate": True}),
            id="own beats agentic",
        ),
        pytest.param(
            WORDS,
            asked(Thinking("off"), tools=True),
            Controls(False, {"effort": "none"}),
            id="off by word",
        ),
    ],
)
def test_neutral_setting_becomes_arguments_and_a_limit(
    family: Family, given: Turn, expected: Controls
) -> None:
    assert controls(given, family, EFFORTS) == expected

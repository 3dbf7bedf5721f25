from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from families.family import Family
from prompts.prompter import Prompter, PromptSettings
from prompts.retention import last_question
from tests.prompts.models import KEEPING
from tests.prompts.turns_made import FORECAST, assistant, call, result, system, turn, user
from turns.blocks import Reasoning
from turns.turn import Turn

THINKING = "clear_thinking_20251015"
USES = "clear_tool_uses_20250919"


def asked(*edits: dict[str, Any]) -> Turn:
    """Three calls in a row, each thought about."""
    steps = []
    for n in ("1", "2", "3"):
        steps += [
            assistant(Reasoning(f"think{n}"), call(f'{{"place": "p{n}"}}', id=n)),
            user(result(f"rain{n}", n)),
        ]
    return turn(system("S"), user("go"), *steps, tools=(FORECAST,), edits=edits)


def left(prompter: Prompter, *edits: dict[str, Any]) -> set[str]:
    """Which of the thoughts, arguments and results are still in the prompt."""
    text = prompter.render(asked(*edits))
    words = [f"{word}{n}" for word in ("think", "p", "rain") for n in "123"]
    return {word for word in words if word in text}


ALL = {f"{word}{n}" for word in ("think", "p", "rain") for n in "123"}


@pytest.mark.parametrize(
    ("edit", "gone"),
    [
        pytest.param({"type": THINKING, "keep": "all"}, set(), id="all"),
        pytest.param({"type": THINKING}, set(), id="nothing said"),
        pytest.param(
            {"type": THINKING, "keep": {"type": "thinking_turns", "value": 1}},
            {"think1", "think2"},
            id="one",
        ),
        pytest.param(
            {"type": THINKING, "keep": {"type": "thinking_turns", "value": 0}},
            {"think1", "think2", "think3"},
            id="none",
        ),
        pytest.param(
            {"type": THINKING, "keep": {"type": "thinking_turns", "value": 9}},
            set(),
            id="more than there are",
        ),
        pytest.param({"type": "compact_20990101", "keep": 3}, set(), id="unknown edit"),
        pytest.param({"type": USES}, set(), id="under the usual trigger"),
        pytest.param(
            {
                "type": USES,
                "trigger": {"type": "tool_uses", "value": 2},
                "keep": {"type": "tool_uses", "value": 1},
            },
            {"rain1", "rain2"},
            id="old results",
        ),
        pytest.param(
            {
                "type": USES,
                "trigger": {"type": "input_tokens", "value": 10},
                "keep": {"type": "tool_uses", "value": 2},
                "clear_tool_inputs": True,
            },
            {"rain1", "p1"},
            id="and their arguments",
        ),
        pytest.param(
            {
                "type": USES,
                "trigger": {"type": "input_tokens", "value": 10},
                "keep": {"type": "tool_uses", "value": 0},
                "exclude_tools": ["forecast"],
            },
            set(),
            id="spared tool",
        ),
        pytest.param(
            {
                "type": USES,
                "trigger": {"type": "input_tokens", "value": 10},
                "keep": {"type": "tool_uses", "value": 0},
                "clear_at_least": {"type": "input_tokens", "value": 5000},
            },
            set(),
            id="not worth it",
        ),
    ],
)
def test_edits_forget_what_they_say(
    keeping: Prompter, edit: dict[str, Any], gone: set[str]
) -> None:
    assert left(keeping) == ALL
    assert left(keeping, edit) == ALL - gone


def test_cleared_results_leave_a_word(keeping: Prompter) -> None:
    edit = {
        "type": USES,
        "trigger": {"type": "tool_uses", "value": 1},
        "keep": {"type": "tool_uses", "value": 0},
    }
    assert keeping.render(asked(edit)).count("was cleared to save context") == 3


def test_operator_may_limit_thinking(folder: Callable[[Family], Path]) -> None:
    limited = Prompter.load(
        folder(KEEPING), KEEPING, settings=PromptSettings(keep_thinking_turns=1)
    )
    assert left(limited) == ALL - {"think1", "think2"}
    edit = {"type": THINKING, "keep": {"type": "thinking_turns", "value": 2}}
    assert left(limited, edit) == ALL - {"think1"}


def test_session_gone_cold_forgets_what_it_thought_before_the_last_question(
    keeping: Prompter,
) -> None:
    history = (user("a"), assistant(Reasoning("old"), "b"), user("c"))
    before = turn(*history)
    cold = last_question(before)
    assert cold == 2
    assert b"old" in keeping.tokenizer.decode(keeping.finish(keeping.plan(before)).ids).encode()
    first = keeping.finish(keeping.plan(before, forget_before=cold))
    assert "old" not in keeping.tokenizer.decode(first.ids)
    later = turn(*history, assistant(Reasoning("new"), "d"), user("e"))
    second = keeping.finish(keeping.plan(later, forget_before=cold))
    assert second.ids[: first.reply_at] == first.ids[: first.reply_at]
    assert "new" in keeping.tokenizer.decode(second.ids)

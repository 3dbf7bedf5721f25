from __future__ import annotations

import pytest

from actors.engines.scripted.scene import Scene, look
from tests.actors.engines.scripted.toy import answered, ask, called, tool
from turns.blocks import Message, Reasoning, Text, ToolReference, ToolResult
from turns.turn import Tool, ToolChoice

ANSWER = Message("assistant", (Text("done"),))


def test_no_conversation_is_an_empty_scene() -> None:
    assert look(None) == Scene()


@pytest.mark.parametrize(
    ("messages", "step", "turn"),
    [
        pytest.param(["q"], 0, 0, id="first"),
        pytest.param(["q", called(), answered("r")], 1, 0, id="result"),
        pytest.param(["q", called(), answered("r"), "context"], 1, 0, id="user-after-result"),
        pytest.param(["q", called(), answered("r"), called(), answered("s")], 2, 0, id="two"),
        pytest.param(["q", called(), answered("r"), ANSWER, "again"], 0, 1, id="next-turn"),
        pytest.param(
            ["q", called(), answered("r"), ANSWER, "again", called(), answered("s")],
            1,
            1,
            id="next",
        ),
        pytest.param(["q", ANSWER, called(), answered("r")], 1, 0, id="text-before-call"),
        pytest.param(["q", called(), ANSWER, answered("r")], 1, 0, id="text-after-call"),
        pytest.param(
            ["q", Message("assistant", (Reasoning("hm"),)), called(), answered("r")],
            1,
            0,
            id="reasoning-alone",
        ),
    ],
)
def test_steps_are_results_since_the_last_answer(
    messages: list[Message | str], step: int, turn: int
) -> None:
    scene = look(ask(*messages))
    assert (scene.step, scene.turn) == (step, turn)


def test_the_prompt_is_the_last_thing_said_that_is_not_wrapped_in_a_tag() -> None:
    first = Message("user", (Text("<system-reminder>x</system-reminder>"), Text("Do it.")))
    scene = look(ask(first, called(), answered("r"), "<<<BEGIN_CONTEXT>>> tail"))
    assert scene.last_user == "Do it."
    assert "BEGIN_CONTEXT" in scene.asked
    assert look(ask("<only tags>")).last_user == "<only tags>"


def test_results_are_those_of_this_round() -> None:
    scene = look(
        ask("q", called(), answered("old"), ANSWER, "q", called(), answered("a"), answered("b"))
    )
    assert (scene.result, scene.results) == ("b", "a\nb")


def test_system_text_is_apart() -> None:
    messages = (Message("system", (Text("be"),)), Message("developer", (Text("brief"),)))
    scene = look(ask(*messages, "hi"))
    assert (scene.system, scene.asked) == ("be\nbrief", "hi")


def test_only_what_may_be_called_is_a_tool() -> None:
    plain, deferred = tool("a"), Tool("b", deferred=True)
    both = [plain, deferred]
    assert look(ask("q", tools=both)).tools == (plain,)
    assert look(ask("q", tools=both, tool_choice=ToolChoice("none"))).tools == ()
    shown = Message("tool", (ToolResult("c1", (ToolReference("b"),)),))
    assert look(ask("q", called(), shown, tools=both)).tools == (plain, deferred)

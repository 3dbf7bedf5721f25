"""What stays of a conversation that is too long: the head, the last question, whole steps."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from prompts.fitting import shortened
from turns.blocks import Message, Text, ToolCall, ToolResult


def say(role: str, words: str = "x") -> Message:
    return Message(role, (Text(words),))  # type: ignore[arg-type]


def call(name: str) -> Message:
    return Message("assistant", (ToolCall(name, "f", "{}"),))


def result(name: str) -> Message:
    return Message("user", (ToolResult(name),))


def test_exchanges_go_first_and_then_the_steps_of_the_last() -> None:
    head, one, two = say("system"), say("user", "1"), say("user", "2")
    loop = [call("a"), result("a"), call("b"), result("b"), say("assistant")]
    found = shortened([head, one, say("assistant"), two, *loop])
    assert found == [
        (head, two, *loop),
        (head, two, *loop[2:]),
        (head, two, *loop[4:]),
    ]


def test_what_has_nothing_to_lose_stays_whole() -> None:
    assert shortened([]) == []
    assert shortened([say("system"), say("user")]) == []
    assert shortened([say("assistant"), result("a")]) == []


MESSAGES = st.lists(
    st.one_of(
        st.builds(say, st.sampled_from(["user", "assistant", "system"])),
        st.sampled_from("abc").map(call),
        st.sampled_from("abc").map(result),
    ),
    max_size=12,
)


@settings(max_examples=150, deadline=None)
@given(messages=MESSAGES)
def test_each_is_shorter_than_the_one_before_and_ends_as_the_whole_does(
    messages: list[Message],
) -> None:
    sizes = [len(messages), *map(len, shortened(messages))]
    assert sizes == sorted(sizes, reverse=True)
    for kept in shortened(messages):
        assert kept[-1] == messages[-1]
        assert len(kept) < len(messages)

"""What a rule can see of a conversation: one pass over the turn's messages."""

from __future__ import annotations

from msgspec import Struct

from turns.blocks import Message, Text, ToolCall, ToolReference, ToolResult
from turns.turn import Tool, Turn


class Scene(Struct, frozen=True):
    """The conversation as a rule sees it.

    `step` counts the tool results since the last answer (an assistant message without tool calls);
    it is not counted from the last user message, since some harnesses add one after every result.
    `asked` is all that the user said since that answer, `last_user` the last piece of it that is
    not wrapped in a tag (harnesses append reminders and environment in tags). `result` is the last
    tool result's text, `results` all of this round's. `turn` counts the answers given so far.
    `tools` are those that may be called now: none under tool_choice none, deferred ones once shown.
    """

    request: Turn | None = None
    asked: str = ""
    last_user: str = ""
    system: str = ""
    result: str = ""
    results: str = ""
    step: int = 0
    turn: int = 0
    tools: tuple[Tool, ...] = ()


def look(request: Turn | None) -> Scene:
    """The scene of a request; of none at all, an empty one."""
    if request is None:
        return Scene()
    messages = request.messages
    start, answers = _since_last_answer(messages)
    recent = messages[start:]
    spoken = [
        block.text
        for message in recent
        if message.role == "user"
        for block in message.blocks
        if isinstance(block, Text)
    ]
    results = [
        block for message in recent for block in message.blocks if isinstance(block, ToolResult)
    ]
    texts = [_text(result) for result in results]
    return Scene(
        request=request,
        asked="\n".join(spoken),
        last_user=_prompt_of(spoken),
        system=_system(messages),
        result=texts[-1] if texts else "",
        results="\n".join(texts),
        step=len(results),
        turn=answers,
        tools=_callable(request),
    )


def _since_last_answer(messages: tuple[Message, ...]) -> tuple[int, int]:
    """Where the open round begins, and how many answers stand before it.

    Neighbouring assistant messages are one reply: the Responses API sends reasoning, text and
    calls as separate items.
    """
    start = answers = 0
    position = 0
    while position < len(messages):
        if messages[position].role != "assistant":
            position += 1
            continue
        run = position
        while run < len(messages) and messages[run].role == "assistant":
            run += 1
        blocks = [block for message in messages[position:run] for block in message.blocks]
        calls = any(isinstance(block, ToolCall) for block in blocks)
        if not calls and any(isinstance(block, Text) for block in blocks):
            start, answers = run, answers + 1
        position = run
    return start, answers


def _prompt_of(spoken: list[str]) -> str:
    plain = [text for text in spoken if not text.lstrip().startswith("<")]
    return (plain or spoken or [""])[-1]


def _system(messages: tuple[Message, ...]) -> str:
    return "\n".join(
        block.text
        for message in messages
        if message.role in ("system", "developer")
        for block in message.blocks
        if isinstance(block, Text)
    )


def _text(result: ToolResult) -> str:
    return "\n".join(block.text for block in result.content if isinstance(block, Text))


def _callable(request: Turn) -> tuple[Tool, ...]:
    if request.tool_choice.mode == "none":
        return ()
    if not any(tool.deferred for tool in request.tools):
        return request.tools
    shown = {
        piece.name
        for message in request.messages
        for block in message.blocks
        for piece in (block.content if isinstance(block, ToolResult) else (block,))
        if isinstance(piece, ToolReference)
    }
    return tuple(tool for tool in request.tools if not tool.deferred or tool.name in shown)

"""Events: what can happen in a turn, and the order in which it may happen.

A turn is `TurnStarted`, then blocks one after the other, then exactly one `TurnEnded` or
`TurnFailed`. A block is `ReasoningDelta+ ReasoningEnded`, `TextDelta+ TextEnded`, or
`ToolCallStarted ToolArgumentsDelta* (ToolCallReady | ToolCallCut)`. Blocks never overlap: one is
ended before the next begins. `index` counts the tool calls of the turn from 0.

Where the server itself runs tools, `ToolsListed` comes before all blocks, `ToolCallAnswered` once
for every such call, between blocks, and `ToolCallProgressed` anywhere between call and answer.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from turns.errors import ErrorKind

Stop = Literal["end", "tool_use", "length", "stop_sequence", "cancelled", "paused"]
Cut = Literal["length", "cancel", "malformed"]


class Usage(Struct, frozen=True, array_like=True):
    """Real token counts. `input` includes `cached`; `output` includes `reasoning`."""

    input: int = 0
    cached: int = 0
    output: int = 0
    reasoning: int = 0


class TurnStarted(Struct, frozen=True, array_like=True, tag=0):
    """The engine took the turn: tokens of the prompt, and how many of them its cache held."""

    input_tokens: int
    cached_tokens: int = 0


class ReasoningDelta(Struct, frozen=True, array_like=True, tag=1):
    text: str


class ReasoningEnded(Struct, frozen=True, array_like=True, tag=2):
    pass


class Drawn(Struct, frozen=True, array_like=True):
    """A token that was drawn: its bytes, the logarithm of how likely it was, and the likeliest."""

    token: bytes
    logprob: float
    top: tuple[tuple[bytes, float], ...] = ()


class TextDelta(Struct, frozen=True, array_like=True, tag=3):
    """Visible text; `drawn` are its tokens, where it was asked how likely they were."""

    text: str
    drawn: tuple[Drawn, ...] = ()


class TextEnded(Struct, frozen=True, array_like=True, tag=4):
    pass


class ToolCallStarted(Struct, frozen=True, array_like=True, tag=5):
    index: int
    id: str
    name: str


class ToolArgumentsDelta(Struct, frozen=True, array_like=True, tag=6):
    """The next piece of the arguments' JSON text. Concatenated, the pieces are the whole text."""

    index: int
    json: str


class ToolCallReady(Struct, frozen=True, array_like=True, tag=7):
    """The call is complete and `arguments` is a valid JSON object: dispatch it now."""

    index: int
    arguments: str


class ToolCallCut(Struct, frozen=True, array_like=True, tag=8):
    """The call will never be complete. What came of its arguments stays as it is."""

    index: int
    reason: Cut


class TurnEnded(Struct, frozen=True, array_like=True, tag=9):
    stop: Stop
    usage: Usage
    stop_sequence: str | None = None


class TurnFailed(Struct, frozen=True, array_like=True, tag=10):
    """The turn died after it began. `message` is safe to show to the client."""

    kind: ErrorKind
    message: str


class ToolsListed(Struct, frozen=True, array_like=True, tag=11):
    """The tools of a server, as it lists them: `{name, description, input_schema, annotations}`."""

    server: str
    tools: tuple[dict[str, Any], ...]


class ToolCallProgressed(Struct, frozen=True, array_like=True, tag=12):
    """The interim result of a call that still runs, for whoever watches; the model reads none."""

    index: int
    synopsis: str


class ToolCallAnswered(Struct, frozen=True, array_like=True, tag=13):
    """What a call that the server ran gave back, as the model reads it."""

    index: int
    text: str
    is_error: bool = False


Event = (
    TurnStarted
    | ReasoningDelta
    | ReasoningEnded
    | TextDelta
    | TextEnded
    | ToolCallStarted
    | ToolArgumentsDelta
    | ToolCallReady
    | ToolCallCut
    | TurnEnded
    | TurnFailed
    | ToolsListed
    | ToolCallProgressed
    | ToolCallAnswered
)

"""Frames: what an engine hands over at one step for one turn; and the job it was given."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct, field

from turns.events import Event
from turns.turn import OutputFormat, Sampling, Tool, ToolChoice, Turn

Finish = Literal["stop", "length", "abort", "error"]


class Frame(Struct, array_like=True, gc=False):
    """The tokens of one turn at one engine step.

    `cached` is set on the first frame of a turn: prompt tokens that the prefix cache held.
    `finish` is set on the last one; `error` goes with finish `error`. Stop tokens (end of turn)
    are part of `ids`; the parser knows and drops them. `logprobs`, where they are wanted, has for
    each id the ids that it was drawn from with their logarithms: itself first, then the likeliest.
    """

    turn: str
    ids: list[int]
    cached: int = -1
    finish: Finish | None = None
    error: str = ""
    logprobs: list[list[tuple[int, float]]] | None = None


class ParseSpec(Struct, array_like=True, frozen=True):
    """What a parser must know of a turn before its first frame.

    `tail` is the end of the rendered prompt, from which the parser's start state is read.
    """

    family: str
    tail: str
    tools: tuple[Tool, ...] = ()
    stop: tuple[str, ...] = ()
    tool_choice: ToolChoice = field(default_factory=ToolChoice)
    output: OutputFormat = field(default_factory=OutputFormat)


class Picture(Struct, array_like=True, frozen=True):
    """A picture of a prompt: its bytes as they were sent, and the ids that stand for it.

    `digest` names the bytes; `width` and `height` are in pixels. There are `length` ids, from `at`
    on; an engine's own processor makes them of the one id `pad`.
    """

    digest: str
    media_type: str
    data: bytes
    width: int
    height: int
    at: int
    length: int
    pad: int


class Job(Struct, array_like=True, frozen=True):
    """All that an engine needs to run a turn: token ids in, and nothing to render.

    `priority`: lower runs first (vLLM's polarity). `salt` separates prefix caches. `conversation`
    is filled only for engines that answer from the conversation itself (the scripted one).
    `resumed` of the prompt's last tokens are output of this turn from an engine that it left: the
    turn goes on behind them (`actors.legs`), and `turn` is then the name of this leg of it.
    `pictures` are those of the prompt, in their order.
    """

    turn: str
    prompt: list[int]
    sampling: Sampling
    spec: ParseSpec
    stop_ids: tuple[int, ...] = ()
    priority: int = 0
    salt: str = ""
    conversation: Turn | None = None
    thinking_budget: int | None = None
    constraint: dict[str, Any] | None = None
    resumed: int = 0
    pictures: tuple[Picture, ...] = ()


class EventBatch(Struct, array_like=True, frozen=True):
    """The events of one turn at one step, as they travel from a parser actor to an ingress.

    `ids` are the tokens generated since the batch before, stop tokens included: whoever has the
    batches so far can have the turn go on behind exactly their events. `exact` is False in the last
    batch where it is not known which of its tokens are the reply.
    """

    turn: str
    events: list[Event]
    ids: list[int] = field(default_factory=list)
    exact: bool = True

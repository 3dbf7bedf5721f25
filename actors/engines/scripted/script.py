"""A script: what one turn will say, token by token, and how it ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

FaultKind = Literal["exit", "raise", "fail", "hang", "stall"]
"""`exit`: the process dies at once. `raise`: the engine dies and the process lives. `fail`: this
turn ends with an error. `hang`: this turn goes silent. `stall`: the whole engine goes silent."""


class Fault(Struct, frozen=True):
    """What goes wrong once the turn has said all its tokens; `message` goes with `fail`."""

    kind: FaultKind
    message: str = "the scenario asked for a failure"


class Pace(Struct, frozen=True):
    """A turn's own pace, in seconds, where it is not the engine's."""

    token_s: float = 0.0
    first_s: float = 0.0


class Script(Struct, frozen=True):
    """The output of a turn.

    `ids` holds the end-of-turn token where the turn stops by itself. `cuts` are the ends of what
    each step says (None: a token a step), as many of the last one as there are empty frames at the
    end. `cached` is reported in place of what the cache really held.
    """

    ids: Sequence[int]
    finish: Literal["stop", "length"] = "stop"
    cuts: Sequence[int] | None = None
    fault: Fault | None = None
    pace: Pace | None = None
    cached: int | None = None


def until_stop(script: Script, stop_ids: Sequence[int]) -> Script:
    """The script as an engine would sample it: it ends with the first stop token."""
    ids = script.ids
    ends = [ids.index(stop) + 1 for stop in stop_ids if stop in ids]
    if not ends or min(ends) == len(ids):
        return script
    return shortened(script, min(ends), "stop")


def shortened(script: Script, length: int, finish: Literal["stop", "length"]) -> Script:
    """The first `length` tokens, ended by `finish`; a fault that would come later never comes."""
    if length >= len(script.ids):
        return script
    cuts = script.cuts
    if cuts is not None:
        cuts = [*(cut for cut in cuts if cut < length), length]
    return Script(
        ids=script.ids[:length],
        finish=finish,
        cuts=cuts,
        pace=script.pace,
        cached=script.cached,
    )

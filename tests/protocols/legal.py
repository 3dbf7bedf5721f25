"""Every legal sequence of events, as a strategy: the order law of `turns/events.py`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise

from hypothesis import strategies as st

from turns.events import (
    Event,
    ReasoningDelta,
    ReasoningEnded,
    TextDelta,
    TextEnded,
    ToolArgumentsDelta,
    ToolCallCut,
    ToolCallReady,
    ToolCallStarted,
    TurnEnded,
    TurnFailed,
    TurnStarted,
    Usage,
)

CHARACTERS = st.characters(exclude_categories=["Cs"])
SPICE = ["</think>", '"', "\\", "\n", "  ", "\r\n", "\u2028", "\x85", "é", "🚀", "data: x\n\n", "{"]
TEXTS = st.one_of(st.text(CHARACTERS, min_size=1, max_size=8), st.sampled_from(SPICE))
KEYS = st.sampled_from(["input", "place", "a b", "é"])
VALUES = st.one_of(TEXTS, st.integers(), st.none(), st.booleans(), st.lists(TEXTS, max_size=2))
NAMES = st.sampled_from(
    ["forecast", "weather__forecast", "apply_patch", "local_shell", "tool_search", "undeclared"]
)
OPENERS = st.builds(TurnStarted, st.integers(1, 10**6), st.just(0))


@st.composite
def pieces(draw, whole: str) -> list[str]:
    """A text cut at any places; the pieces joined are the text."""
    cuts = sorted(draw(st.sets(st.integers(1, max(1, len(whole) - 1)), max_size=4)))
    edges = [0, *[cut for cut in cuts if cut < len(whole)], len(whole)]
    return [whole[a:b] for a, b in pairwise(edges) if a < b]


@st.composite
def text_block(draw) -> list[Event]:
    return [*map(TextDelta, draw(st.lists(TEXTS, min_size=1, max_size=4))), TextEnded()]


@st.composite
def reasoning_block(draw) -> list[Event]:
    return [*map(ReasoningDelta, draw(st.lists(TEXTS, min_size=1, max_size=4))), ReasoningEnded()]


@st.composite
def call_block(draw, index: int, *, cut: bool) -> list[Event]:
    """A call; its last pieces may come only with `ToolCallReady`. Half of the ids are absent."""
    arguments = draw(st.dictionaries(KEYS, VALUES, max_size=3))
    spaced = draw(st.booleans())
    whole = json.dumps(arguments, ensure_ascii=spaced, indent=1 if spaced else None)
    sent = draw(pieces(whole))
    started = ToolCallStarted(index, draw(st.sampled_from(["", f"call_x{index}"])), draw(NAMES))
    if cut:
        sent = sent[:-1]
        reason = draw(st.sampled_from(["length", "malformed"]))
        return [started, *[ToolArgumentsDelta(index, p) for p in sent], ToolCallCut(index, reason)]
    if draw(st.booleans()):
        sent = sent[:1]
    ready = ToolCallReady(index, whole)
    return [started, *[ToolArgumentsDelta(index, piece) for piece in sent], ready]


@st.composite
def sequences(draw, *, failing: bool = False, cutting: bool = True) -> list[Event]:
    """A whole turn; with `failing` one that dies somewhere after it began."""
    usage = Usage(draw(st.integers(1, 10**6)), 0, draw(st.integers(0, 999)), 0)
    events: list[Event] = [TurnStarted(usage.input, usage.cached)]
    calls = 0
    kinds = ["text", "reasoning", "call", *(["cut"] if cutting else [])]
    last = ""
    for kind in draw(st.lists(st.sampled_from(kinds), max_size=6)):
        if kind == "text":
            if last == "text":
                continue  # two texts in a row are one block
            events += draw(text_block())
        elif kind == "reasoning":
            events += draw(reasoning_block())
        else:
            events += draw(call_block(calls, cut=kind == "cut"))
            calls += 1
        last = kind
    if failing:
        kept = draw(st.integers(1, len(events)))
        kind = draw(st.sampled_from(["engine", "overloaded", "internal", "context_too_long"]))
        return [*events[:kept], TurnFailed(kind, "the engine died")]
    stop = draw(st.sampled_from(["end", "tool_use", "length", "stop_sequence", "cancelled"]))
    matched = "STOP" if stop == "stop_sequence" else None
    return [*events, TurnEnded(stop, usage, matched)]


def splits(events: Sequence[Event]) -> st.SearchStrategy[list[list[Event]]]:
    """The same events in any batches, as an engine's steps would bring them."""
    return st.lists(st.integers(0, len(events)), max_size=6).map(
        lambda cuts: [
            list(events[a:b])
            for a, b in zip([0, *sorted(cuts)], [*sorted(cuts), len(events)], strict=True)
        ]
    )

"""What is wrong with a run: the corpus' judge, and the invariants that it leaves to us."""

from __future__ import annotations

import json
import re

from tests.conformance.corpus import STOPS, Case, Run, flat, tool
from turns.blocks import Reasoning, Text, ToolCall
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
)
from turns.reply import CutCall


def problems(case: Case, run: Run) -> list[str]:
    """Everything that is wrong with this run of this case; [] when nothing is."""
    found = list(tool("judge").judge(case, flat(run.reply)))
    found += unlawful(run.events)
    found += _stop(case, run)
    found += _partial(case, run)
    found += _segments(case, run)
    found += _invariants(case, run)
    return found


def unlawful(events: list[Event]) -> list[str]:
    """Breaches of the order law of `turns/events.py`, and of what events promise."""
    watch = _Order()
    for event in events:
        match event:
            case TextDelta() | ReasoningDelta():
                watch.delta(event)
            case TextEnded() | ReasoningEnded():
                watch.ended(event)
            case ToolCallStarted() | ToolArgumentsDelta() | ToolCallReady() | ToolCallCut():
                watch.call(event)
    if not events or not isinstance(events[-1], TurnEnded) or watch.opened:
        watch.found.append("the turn does not end after its last block")
    return watch.found


class _Order:
    """Which block is open, and what was wrong so far."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self.opened = ""
        self._index = 0
        self._json = ""

    def delta(self, event: TextDelta | ReasoningDelta) -> None:
        kind = type(event).__name__.removesuffix("Delta")
        if self.opened not in ("", kind) or not event.text:
            self.found.append(f"{event} while {self.opened or 'nothing'} is open")
        self.opened = kind

    def ended(self, event: TextEnded | ReasoningEnded) -> None:
        if self.opened != type(event).__name__.removesuffix("Ended"):
            self.found.append(f"{event} while {self.opened or 'nothing'} is open")
        self.opened = ""

    def call(
        self, event: ToolCallStarted | ToolArgumentsDelta | ToolCallReady | ToolCallCut
    ) -> None:
        started = isinstance(event, ToolCallStarted)
        if self.opened != ("" if started else "Call") or event.index != self._index:
            self.found.append(f"{event} while {self.opened} is open, {self._index} is next")
        match event:
            case ToolCallStarted():
                self.opened, self._json = "Call", ""
            case ToolArgumentsDelta(json=text):
                self._json += text
                if not text:
                    self.found.append(f"{event} is empty")
            case ToolCallReady(arguments=whole):
                if whole != self._json or not isinstance(json.loads(whole), dict):
                    self.found.append(f"{event} is not the object streamed: {self._json!r}")
        if isinstance(event, ToolCallReady | ToolCallCut):
            self.opened, self._index = "", self._index + 1


def _stop(case: Case, run: Run) -> list[str]:
    wanted = STOPS[case["expected"]["finish_reason"]]
    return [] if run.reply.stop == wanted else [f"stop {run.reply.stop}, not {wanted}"]


def _partial(case: Case, run: Run) -> list[str]:
    """A cut call may be absent; where it is there, its arguments are a prefix of the right ones."""
    cut = [block for block in run.reply.blocks if isinstance(block, CutCall)]
    wanted = case["expected"].get("partial_call")
    if wanted is None:
        return []
    return [
        f"cut call {each.call}"
        for each in cut
        if each.call.name != wanted["name"]
        or not wanted["arguments_prefix_of"].startswith(each.call.arguments)
    ]


def _segments(case: Case, run: Run) -> list[str]:
    wanted = case["expected"].get("segments")
    if wanted is None:
        return []
    got: list[list[str | int]] = []
    calls = 0
    for block in run.reply.blocks:
        match block:
            case Reasoning(text=text):
                got.append(["reasoning", text.strip()])
            case Text(text=text):
                got.append(["text", text.strip()])
            case _:
                got.append(["tool", calls])
                calls += 1
    return [] if got == wanted else [f"segments {got}"]


def _invariants(case: Case, run: Run) -> list[str]:
    calls = [block for block in run.reply.blocks if isinstance(block, ToolCall)]
    texts = [b.text for b in run.reply.blocks if isinstance(b, Text | Reasoning)]
    ids = [call.id for call in calls]
    found: list[str] = []
    for rule in case["invariants"]:
        name, _, argument = rule.partition(":")
        match name:
            case "no_marker_leak":
                expected = str(case["expected"]["content"]) + str(case["expected"]["reasoning"])
                found += [
                    f"{mark} leaked"
                    for mark in case["special_tokens"]
                    if mark not in expected and any(mark in text for text in texts)
                ]
            case "no_whitespace_only_text_segment":
                found += ["blank text" for text in texts if not text.strip()]
            case "ids_unique_and_stable" if len(set(ids)) != len(ids):
                found.append(f"ids {ids}")
            case "id_equals" if ids != argument.split(","):
                found.append(f"ids {ids}")
            case "id_matches" if not all(re.fullmatch(argument, each) for each in ids):
                found.append(f"ids {ids}")
            case "arguments_stream_incrementally":
                deltas = sum(isinstance(event, ToolArgumentsDelta) for event in run.events)
                if run.chunking in ("char", "token-ish") and deltas < 4:
                    found.append(f"only {deltas} argument deltas")
            case _:
                pass
    return found

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
    found: list[str] = []
    opened = ""
    index = 0
    json_text = ""
    for event in events:
        match event:
            case TextDelta(text=text) | ReasoningDelta(text=text):
                kind = type(event).__name__[:-5]
                if opened not in ("", kind) or not text:
                    found.append(f"{event} while {opened or 'nothing'} is open")
                opened = kind
            case TextEnded() | ReasoningEnded():
                if opened != type(event).__name__[:-5]:
                    found.append(f"{event} while {opened or 'nothing'} is open")
                opened = ""
            case ToolCallStarted(index=at):
                if opened or at != index:
                    found.append(f"{event} while {opened or 'nothing'} is open, {index} is next")
                opened, json_text = "Call", ""
            case ToolArgumentsDelta(index=at, json=text):
                if opened != "Call" or at != index or not text:
                    found.append(f"{event} in no call")
                json_text += text
            case ToolCallReady(index=at, arguments=whole):
                if opened != "Call" or at != index or whole != json_text:
                    found.append(f"{event} is not what was streamed: {json_text!r}")
                if not isinstance(json.loads(whole), dict):
                    found.append(f"{event} is no object")
                opened, index = "", index + 1
            case ToolCallCut(index=at):
                if opened != "Call" or at != index:
                    found.append(f"{event} in no call")
                opened, index = "", index + 1
    if not events or not isinstance(events[-1], TurnEnded) or opened:
        found.append("the turn does not end after its last block")
    return found


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

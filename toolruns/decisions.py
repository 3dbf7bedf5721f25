"""Decision rounds: when the model that made a call is asked whether it should go on.

The gateway asks through one callable; what answers (our serving path, on the session's own KV
prefix) is not known here. A round never holds the stream up, is never asked twice about the same
verdict, and an answer that cannot be read means: go on.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any, Literal

from msgspec import Struct

from toolruns.predicate.parse import parse
from toolruns.predicate.syntax import PredicateError
from toolruns.signals import Decided

When = Literal["off", "on_demand", "automatic"]

ANSWER_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "decision": {"enum": ["continue", "stop", "refine"]},
        "consume_until": {"type": "string", "maxLength": 256},
    },
    "required": ["decision"],
    "additionalProperties": False,
}
"""What a decision round may answer; serving constrains the output to it."""


class Question(Struct, frozen=True):
    """One round. `call_id` is the tool-call id that our ingress minted, `principal` its owner:
    who answers must refuse a call of another principal. `text` is the interim result.
    """

    call_id: str
    principal: str
    handle: str
    text: str
    schema: dict[str, Any]


Decider = Callable[[Question], Awaitable[str]]
"""Gives the model's constrained answer as text. May fail in any way; the stream goes on."""


class Pacing(Struct, frozen=True):
    """How often rounds may happen: seconds apart, times the latency of the last, and in all."""

    least_seconds: float = 2.0
    latency_factor: float = 5.0
    most_rounds: int = 6


class Pace:
    """Says when a round is due. One is out at a time."""

    def __init__(self, when: When = "off", pacing: Pacing | None = None) -> None:
        self.when = when
        self.rounds = 0
        self._pacing = pacing or Pacing()
        self._waiting = False
        self._asked_at: float | None = None
        self._latency = 0.0
        self._verdict = ""

    def due(self, now: float, verdict: str, *, demanded: bool = False) -> bool:
        if self.when == "off" or (self.when == "on_demand" and not demanded):
            return False
        if self._waiting or self.rounds >= self._pacing.most_rounds:
            return False
        if verdict == self._verdict and not demanded:
            return False
        pause = max(self._pacing.least_seconds, self._pacing.latency_factor * self._latency)
        return self._asked_at is None or now - self._asked_at >= pause

    def asked(self, now: float, verdict: str) -> None:
        self._waiting, self._asked_at, self._verdict = True, now, verdict
        self.rounds += 1

    def answered(self, latency: float) -> None:
        self._waiting, self._latency = False, latency


def question_text(mode: str, snapshot: dict[str, Any], body: str) -> str:
    """The interim result, saying plainly what it is and what may be answered."""
    kind = "an unbounded stream" if mode == "unbounded" else f"a {mode} result"
    return (
        f"INTERIM: chunk {snapshot.get('chunks', 0)} of {kind}; the stream is still running.\n"
        f"{body}\n"
        'Answer with JSON: {"decision":"continue"} to read on, {"decision":"stop"} if this is '
        'enough, {"decision":"refine","consume_until":"…"} to set a new stop condition.'
    )


def read_answer(text: str, latency: float) -> Decided:
    """The decision in a model's answer; `failed`, which means go on, when there is none."""
    try:
        answer = json.loads(text)
        decision = answer["decision"]
        if decision == "refine":
            return Decided("refine", parse(str(answer["consume_until"])), latency)
        if decision in {"continue", "stop"}:
            return Decided(decision, latency=latency)
    except (ValueError, KeyError, TypeError, PredicateError):
        pass
    return Decided("failed", latency=latency)

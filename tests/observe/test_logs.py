from __future__ import annotations

import io
import json
from typing import Any

import pytest
import structlog

from observe.logs import Level, Logs
from observe.seen import RequestRefused, TurnFailed
from tests.observe.conftest import NAMES, tell_all
from turns.errors import ErrorKind


def lines(level: Level = "debug") -> list[dict[str, Any]]:
    stream = io.StringIO()
    tell_all(Logs(level=level, stream=stream))
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_line_has_the_ids_and_what_happened() -> None:
    ended = next(line for line in lines() if line["event"] == "turn_ended")
    assert ended == {
        "event": "turn_ended",
        "level": "info",
        "at": 2.0,
        "turn": "turn-1",
        "request": "req-1",
        "session": "session-1",
        "api": "messages",
        "model": "m",
        "stop": "length",
        "usage": {"input": 100, "cached": 64, "output": 20, "reasoning": 5},
        "seconds": 1.0,
        "gap": 0.03,
        "longest_gap": 0.2,
    }


def test_each_thing_told_is_one_line() -> None:
    told = lines()
    assert len(told) == 17  # all but the count of events
    assert all({"event", "level", "at"} <= set(line) for line in told)


def test_info_has_what_an_operator_wants() -> None:
    assert [(line["event"], line["level"]) for line in lines("info")] == [
        ("request_refused", "warning"),
        ("turn_routed", "warning"),
        ("turn_ended", "info"),
        ("turn_failed", "error"),
        ("redis_trouble", "warning"),
        ("redis_recovered", "warning"),
        ("tool_run_ended", "info"),
        ("lane_opened", "info"),
        ("lane_lost", "warning"),
    ]


@pytest.mark.parametrize(
    ("kind", "level"),
    [
        ("engine", "error"),
        ("internal", "error"),
        ("overloaded", "warning"),
        ("not_found", "warning"),
    ],
)
def test_our_faults_are_errors_and_clients_faults_are_warnings(kind: ErrorKind, level: str) -> None:
    stream = io.StringIO()
    logs = Logs(stream=stream)
    logs.turn_failed(TurnFailed(NAMES, 1.0, kind, "a\nmessage \ud83d of two lines", 0.5))
    logs.request_refused(RequestRefused("req", "chat", 1.0, kind, "m"))
    told = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [line["level"] for line in told] == [level, level]


def test_other_users_of_structlog_keep_their_configuration() -> None:
    before = structlog.get_config()
    Logs()
    assert structlog.get_config() == before

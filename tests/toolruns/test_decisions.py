from __future__ import annotations

import pytest

from toolruns.decisions import Pace, Pacing, question_text, read_answer


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ('{"decision":"continue"}', "continue"),
        (' {"decision": "stop"}\n', "stop"),
        ('{"decision":"refine","consume_until":"count > 3"}', "refine"),
        ('{"decision":"refine"}', "failed"),
        ('{"decision":"refine","consume_until":"count >"}', "failed"),
        ('{"decision":"explode"}', "failed"),
        ("stop", "failed"),
        ("[]", "failed"),
        ('{"decision":["stop"]}', "failed"),
        ("", "failed"),
    ],
)
def test_an_answer_that_cannot_be_read_means_go_on(text, verdict):
    decided = read_answer(text, 0.25)
    assert (decided.verdict, decided.latency) == (verdict, 0.25)


def test_off_never_asks():
    assert not Pace("off").due(0.0, "converged", demanded=True)


def test_on_demand_asks_only_then():
    pace = Pace("on_demand")
    assert not pace.due(0.0, "settling")
    assert pace.due(0.0, "settling", demanded=True)


def test_an_unchanged_verdict_is_not_asked_about_again():
    pace = Pace("automatic")
    assert pace.due(0.0, "settling")
    pace.asked(0.0, "settling")
    pace.answered(0.1)
    assert not pace.due(60.0, "settling")
    assert pace.due(60.0, "converged")


def test_one_round_at_a_time_and_slow_answers_slow_it_down():
    pace = Pace("automatic")
    pace.asked(0.0, "settling")
    assert not pace.due(60.0, "converged")
    pace.answered(3.0)
    assert not pace.due(14.9, "converged")
    assert pace.due(15.0, "converged")


def test_rounds_are_counted():
    pace = Pace("automatic", Pacing(least_seconds=0.0, most_rounds=2))
    for verdict in ("settling", "widening"):
        assert pace.due(1.0, verdict)
        pace.asked(1.0, verdict)
        pace.answered(0.0)
    assert not pace.due(99.0, "converged")


def test_question_says_what_it_is():
    text = question_text("unbounded", {"chunks": 12}, "{}")
    assert text.startswith("INTERIM: chunk 12 of an unbounded stream; the stream is still running.")
    for choice in ("continue", "stop", "refine"):
        assert f'"decision":"{choice}"' in text

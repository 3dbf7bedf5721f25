from __future__ import annotations

from sessions.estimates import Estimates


def test_nothing_is_expected_of_the_unknown() -> None:
    assert Estimates().expect("s", "bash") is None
    assert Estimates().expect("s", "", kept=300) == 300


def test_session_and_tool_are_both_heard() -> None:
    seen = Estimates()
    seen.saw("s", "bash", 100)
    seen.saw("other", "write", 3000)
    assert seen.expect("s", "bash") == 100
    assert seen.expect("new", "write") == 3000
    assert seen.expect("s", "write") == 1550
    assert seen.of_session("s") == 100
    assert seen.of_session("new") == 0


def test_what_was_learnt_here_stands_before_what_was_kept_elsewhere() -> None:
    seen = Estimates()
    seen.saw("s", "", 100)
    assert seen.expect("s", "bash", kept=9000) == 100


def test_a_mean_follows_and_forgets_slowly() -> None:
    seen = Estimates()
    for tokens in [100] * 20 + [1000] * 20:
        seen.saw("s", "bash", tokens)
    assert 990 < (seen.expect("s", "bash") or 0) <= 1000


def test_the_least_recently_used_is_forgotten() -> None:
    seen = Estimates(bound=4)
    for number in range(10):
        seen.saw(f"s{number}", f"t{number}", 50)
    assert seen.expect("s0", "t0") is None
    assert seen.expect("s9", "t9") == 50

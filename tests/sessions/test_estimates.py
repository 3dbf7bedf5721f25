from __future__ import annotations

from sessions.estimates import Estimates


def test_nothing_is_expected_of_the_unknown() -> None:
    assert Estimates().expect("o", "s", "bash") is None
    assert Estimates().expect("o", "s", "", kept=300) == 300


def test_session_and_tool_are_both_heard() -> None:
    seen = Estimates()
    seen.saw("o", "s", "bash", 100)
    seen.saw("o", "other", "write", 3000)
    assert seen.expect("o", "s", "bash") == 100
    assert seen.expect("o", "new", "write") == 3000
    assert seen.expect("o", "s", "write") == 1550
    assert seen.of_session("o", "s") == 100
    assert seen.of_session("o", "new") == 0


def test_a_session_of_another_owner_is_another() -> None:
    seen = Estimates()
    seen.saw("o", "s", "", 5000)
    seen.saw("o", "s", "bash", 5000)
    seen.saw("p", "t", "bash", 100)
    assert seen.of_session("p", "s") == 0
    assert seen.expect("p", "s", "bash") == seen.expect("p", "new", "bash")
    assert seen.of_session("o", "s") == 5000


def test_what_was_learnt_here_stands_before_what_was_kept_elsewhere() -> None:
    seen = Estimates()
    seen.saw("o", "s", "", 100)
    assert seen.expect("o", "s", "bash", kept=9000) == 100


def test_a_mean_follows_and_forgets_slowly() -> None:
    seen = Estimates()
    for tokens in [100] * 20 + [1000] * 20:
        seen.saw("o", "s", "bash", tokens)
    assert 990 < (seen.expect("o", "s", "bash") or 0) <= 1000


def test_the_least_recently_used_is_forgotten() -> None:
    seen = Estimates(bound=4)
    for number in range(10):
        seen.saw("o", f"s{number}", f"t{number}", 50)
    assert seen.expect("o", "s0", "t0") is None
    assert seen.expect("o", "s9", "t9") == 50

from __future__ import annotations

import logging
from typing import Any

import pytest

from observe.logs import Logs
from observe.metrics import Metrics
from observe.taps import Quiet, Tap, Taps
from tests.observe.conftest import tell_all

TOLD = {name for name in vars(Tap) if not name.startswith("_")}


class Recorder:
    """Hears everything; takes note of it, or fails."""

    def __init__(self, *, fails: bool = False) -> None:
        self.heard: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []
        self._fails = fails

    def __getattr__(self, name: str) -> Any:
        def hear(*told: Any, **how: Any) -> None:
            self.heard.append((name, told, how))
            if self._fails:
                raise RuntimeError(name)

        hear.__name__ = name
        return hear


def test_everything_that_can_be_told_is_told_in_these_tests() -> None:
    recorder = Recorder()
    tell_all(recorder)
    assert {name for name, _, _ in recorder.heard} == TOLD


def test_all_taps_hear_the_same_in_the_same_order() -> None:
    alone, first, second = Recorder(), Recorder(), Recorder()
    tell_all(alone)
    taps = Taps(first, second)
    tell_all(taps)
    assert first.heard == second.heard == alone.heard
    assert taps.failures == 0


def test_a_tap_that_fails_is_not_felt_and_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    broken, sound = Recorder(fails=True), Recorder()
    taps = Taps(broken, sound)
    with caplog.at_level(logging.ERROR, logger="treadle.observe"):
        tell_all(taps)
        tell_all(taps)
    assert broken.heard == sound.heard
    assert taps.failures == len(sound.heard)
    assert len(caplog.records) == len(TOLD)


@pytest.mark.parametrize("tap", [Quiet, Taps, Metrics, Logs])
def test_every_tap_hears_everything(tap: type) -> None:
    assert {name for name in vars(tap) if name in TOLD} == TOLD


def test_quiet_hears_and_does_nothing() -> None:
    tell_all(Quiet())

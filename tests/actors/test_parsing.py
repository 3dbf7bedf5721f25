"""Parsing: a turn whose parsing breaks fails alone."""

from __future__ import annotations

from typing import Any

import pytest

from actors.messages import Opening, Step
from actors.parsing import Parsing
from turns.events import TextDelta, TurnFailed, TurnStarted
from turns.frames import Frame, ParseSpec


class Words:
    """Detokeniser and parser of a toy: token 13 is a defect."""

    over = False

    def feed(self, ids: Any, tokens: int = 0) -> Any:
        if 13 in ids:
            raise RuntimeError("a defect with a secret")
        return ids if tokens == 0 else [TextDelta(str(i)) for i in ids]

    def flush(self) -> list[int]:
        return []


def test_defect_in_one_turn_fails_it_and_no_other(caplog: pytest.LogCaptureFixture) -> None:
    parsing = Parsing(Words, lambda _: Words())  # type: ignore[arg-type, return-value]
    opened = [Opening(turn, "ingress", ParseSpec("f", ""), 3) for turn in ("bad", "good")]
    frames = [Frame("bad", [13], 0), Frame("good", [7], 0)]
    batches = parsing.take(Step(opened, frames))["ingress"]
    bad, good = (batch.events for batch in batches)
    assert isinstance(bad[-1], TurnFailed)
    assert "secret" not in bad[-1].message
    assert good == [TurnStarted(3), TextDelta("7")]
    assert len(parsing) == 1
    assert parsing.take(Step([], [Frame("bad", [7])])) == {}
    assert "turn bad" in caplog.text

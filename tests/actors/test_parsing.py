"""Parsing: a turn whose parsing breaks fails alone."""

from __future__ import annotations

from typing import Any

import pytest

from actors.messages import Opening, Step
from actors.parsing import Parsing
from turns.events import TextDelta, TurnEnded, TurnFailed, TurnStarted
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


class Ending(Words):
    """A toy that ends, by itself at token 9."""

    def feed(self, ids: Any, tokens: int = 0) -> Any:
        self.over = 9 in ids
        return super().feed(ids, tokens)

    def finish(self, finish: Any, usage: Any, *, error: str) -> Any:
        return [TurnEnded("end", usage)]


@pytest.mark.parametrize(
    ("frames", "output"),
    [
        pytest.param([([1, 2], None), ([3], "stop")], [1, 2, 3], id="the engine ends it"),
        pytest.param([([1, 2], None), ([9], None)], [1, 2, 9], id="the parser ends it"),
        pytest.param([([1, 2], None), ([9, 4], None)], [], id="in the middle of a step"),
    ],
)
def test_what_was_generated_comes_once_with_the_end(
    frames: list[tuple[list[int], Any]], output: list[int]
) -> None:
    parsing = Parsing(Ending, lambda _: Ending())  # type: ignore[arg-type, return-value]
    opened = [Opening("t", "ingress", ParseSpec("f", ""), 3)]
    sent = []
    for ids, finish in frames:
        step = Step(opened, [Frame("t", ids, 0, finish)])
        sent += parsing.take(step)["ingress"]
        opened = []
    assert [batch.output for batch in sent] == [[], output]

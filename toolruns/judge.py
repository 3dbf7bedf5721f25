"""What is known of a stream's rows: its synopsis, and whether the caller's predicate holds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from toolruns.arrays import plain
from toolruns.contract import Contract
from toolruns.predicate.syntax import Predicate
from toolruns.predicate.watch import Moment, Watch, verdict_columns
from toolruns.synopsis.stream import Synopsis


class Judge:
    """Takes batches; `satisfied_at` is the row number, from 1, at which the predicate first held.

    Every method may raise PredicateError: the predicate does not fit the columns.
    """

    def __init__(self, contract: Contract, until: Predicate | None, seed: int = 0) -> None:
        watched = verdict_columns(until.root) if until else ()
        keys = (*contract.keys(), *watched)
        self.synopsis = Synopsis(keys, score=contract.score(), seed=seed)
        self.watch = Watch(until, self.synopsis) if until else None
        self.satisfied_at: int | None = None

    @property
    def until(self) -> str | None:
        return self.watch.predicate.text if self.watch else None

    @property
    def clocked(self) -> bool:
        """Whether time alone may satisfy the predicate."""
        return self.watch is not None and self.watch.predicate.clocked

    def take(self, batch: Any, moment: Moment) -> bool:
        """A whole batch counts, even when its first row satisfies. True when it holds."""
        before = self.synopsis.rows
        for piece in self.synopsis.pieces(batch, before):
            self.synopsis.add(piece)
            self._feed(piece, before, moment)
            before += piece.num_rows
        self.synopsis.end_chunk()
        return self.holds(moment)

    def holds(self, moment: Moment) -> bool:
        """Whether the predicate held at some row, or holds now."""
        if self.watch is not None and self.satisfied_at is None and self.watch.check(moment):
            self.satisfied_at = self.synopsis.rows
        return self.satisfied_at is not None

    def replace(self, until: Predicate, past: Iterable[Any], moment: Moment) -> bool:
        """A new predicate, over the whole stream: `past` holds the batches taken so far."""
        self.satisfied_at = None
        self.synopsis.follow(verdict_columns(until.root))
        self.watch = Watch(until, self.synopsis)
        before = 0
        for batch in past:
            self._feed(plain(batch), before, moment)
            before += batch.num_rows
        return before > 0 and self.holds(moment)

    def _feed(self, piece: Any, before: int, moment: Moment) -> None:
        if self.watch is not None and self.satisfied_at is None:
            row = self.watch.feed(piece, moment)
            if row is not None:
                self.satisfied_at = before + row + 1

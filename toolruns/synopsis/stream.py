"""The synopsis of a stream: its columns, its first rows, a fair sample, and a verdict."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct

from toolruns.arrays import plain
from toolruns.synopsis.column import TOP, ColumnSummary
from toolruns.synopsis.convergence import Judgement, State, next_check, worst
from toolruns.synopsis.hits import Hits
from toolruns.synopsis.reservoir import Rows

WATCHED = 6
DETAILED = 8
QUANTILED = 4
SUMMARISED = 64
_KEY_NAME = re.compile(r"(^|_)(id|key|date|ts|time|status|state|level|type)s?$", re.IGNORECASE)


class ColumnView(Struct, omit_defaults=True):
    """What is known of a column. `approx` says that `distinct` and `top` come from sketches."""

    name: str
    type: str
    nulls: int = 0
    min: Any = None
    max: Any = None
    distinct: int | None = None
    approx: bool = False
    top: list[tuple[Any, int]] = []
    quantiles: dict[str, float] = {}
    order: str = ""
    state: State | None = None
    slope: float | None = None
    mixed: int = 0


class StreamView(Struct):
    """The synopsis at one moment; everything the model may be shown."""

    rows: int
    verdict: State
    columns: list[ColumnView]
    head: list[dict[str, Any]]
    sample: list[dict[str, Any]]
    notes: list[str]


class Synopsis:
    """Feed it the chunks of a stream. `keys` name the columns that carry the verdict.

    `pieces` cuts a chunk where a judgement falls due; add the pieces one by one, then `end_chunk`.
    """

    def __init__(self, keys: Sequence[str] = (), *, score: str = "", seed: int = 0) -> None:
        self.rows = 0
        self._keys = tuple(keys)
        self._columns: dict[str, ColumnSummary] = {}
        self._kept = Rows(seed)
        self._hits = Hits(score) if score else None
        self._seed = seed
        self._dropped = 0

    @staticmethod
    def pieces(batch: Any, rows: int) -> list[Any]:
        """The batch that follows row number `rows`, cut at the row numbers of judgements."""
        cut, at = [], 0
        while at < batch.num_rows:
            size = min(batch.num_rows - at, next_check(rows + at) - rows - at)
            cut.append(batch.slice(at, size))
            at += size
        return cut

    def add(self, piece: Any) -> None:
        """Take rows that do not cross a judgement: one of `pieces`."""
        piece = plain(piece)
        names = piece.schema.names
        if not all(name in self._columns for name in names):
            self._meet(piece)
        check = next_check(self.rows)
        window = check // 2 if self.rows else check
        for name, summary in self._columns.items():
            index = piece.schema.get_field_index(name)
            if index < 0:
                summary.add_missing(piece.num_rows)
            else:
                summary.add(piece.column(index), window)
        self._kept.add(piece)
        if self._hits is not None:
            self._hits.add(piece)
        self.rows += piece.num_rows
        if self.rows == check:
            for summary in self._columns.values():
                summary.check(self.rows)

    def end_chunk(self) -> None:
        if self._hits is not None:
            self._hits.end_chunk()

    def _meet(self, piece: Any) -> None:
        """Columns seen for the first time: decide how closely each is followed."""
        fresh = [f for f in piece.schema if f.name not in self._columns]
        room = SUMMARISED - len(self._columns)
        self._dropped += max(0, len(fresh) - room)
        fresh = fresh[:room]
        named = [f.name for f in fresh if f.name in self._keys]
        keys = named or [f.name for f in fresh if _KEY_NAME.search(f.name)]
        keys = (keys or [f.name for f in fresh])[:WATCHED]
        for index, field in enumerate(fresh):
            summary = ColumnSummary(field.name, field.type, seed=self._seed + index)
            summary.add_missing(self.rows)
            if field.name in keys or field.name in self._keys:
                summary.keep_watch()
            elif len(self._columns) < DETAILED and summary.kind != "other":
                summary.keep_detail()
            measured = sum(1 for c in self._columns.values() if c.has_quantiles)
            if summary.kind == "number" and measured < QUANTILED:
                summary.keep_quantiles()
            self._columns[field.name] = summary

    def follow(self, columns: Sequence[str]) -> None:
        """Watch these columns too, from here on: a later predicate asks for their verdict."""
        self._keys = (*self._keys, *columns)
        for name in columns:
            summary = self._columns.get(name)
            if summary is not None and summary.watch is None:
                summary.keep_watch()

    def judgements(self) -> dict[str, Judgement]:
        watched = {n: c.watch for n, c in self._columns.items() if c.watch is not None}
        return {name: watch.judgement for name, watch in watched.items()}

    def verdict(self) -> State:
        if self._hits is not None and self._hits.settled:
            return "converged"
        return worst(self.judgements())

    def converged(self, column: str) -> bool:
        """Whether the column, or with "" the stream, has converged."""
        if not column:
            return self.verdict() == "converged"
        judged = self.judgements().get(column)
        return judged is not None and judged.state == "converged"

    def top_k_stable(self, chunks: int) -> bool:
        return self._hits is not None and self._hits.stable >= chunks

    def view(self) -> StreamView:
        columns = [_view(summary) for summary in self._columns.values()]
        notes = [f"ordered by {c.name} {c.order}" for c in columns if c.order]
        if self._dropped:
            notes.append(f"{self._dropped} more columns are not summarised")
        return StreamView(
            rows=self.rows,
            verdict=self.verdict(),
            columns=columns,
            head=list(self._kept.head),
            sample=list(self._kept.sample),
            notes=notes,
        )


def _view(summary: ColumnSummary) -> ColumnView:
    distinct, watch = summary.distinct, summary.watch
    slope = watch.judgement.slope if watch else math.nan
    return ColumnView(
        name=summary.name,
        type=summary.type,
        nulls=summary.nulls,
        min=summary.low,
        max=summary.high,
        distinct=distinct.count() if distinct else None,
        approx=distinct is not None and not distinct.exact,
        top=distinct.top(TOP) if distinct else [],
        quantiles=summary.quantiles(),
        order=summary.order.direction,
        state=watch.judgement.state if watch else None,
        slope=None if math.isnan(slope) else round(slope, 2),
        mixed=summary.mixed,
    )


def to_json(view: StreamView) -> dict[str, Any]:
    built: dict[str, Any] = msgspec.to_builtins(view, enc_hook=str)
    return built

"""The oracle here is plain Python over every prefix, written apart from the code under test."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolruns.predicate.aggregates import Distinct
from toolruns.predicate.parse import parse
from toolruns.predicate.syntax import PredicateError
from toolruns.predicate.watch import Moment, Watch

Row = dict[str, Any]
NOON = dt.datetime(2026, 1, 1)  # noqa: DTZ001 (the column is naive, as databases have them)
SCHEMA = pa.schema(
    [
        ("user_id", pa.int64()),
        ("status", pa.string()),
        ("amount", pa.float64()),
        ("ok", pa.bool_()),
        ("at", pa.timestamp("us")),
    ]
)


class NoOpinion:
    def converged(self, column: str) -> bool:
        return False

    def top_k_stable(self, chunks: int) -> bool:
        return False


def known(rows: list[Row], name: str) -> list[Any]:
    return [row[name] for row in rows if row[name] is not None]


def mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else float("nan")


ORACLES: list[tuple[str, Callable[[list[Row]], bool]]] = [
    ("count >= 7", lambda r: len(r) >= 7),
    ("rows * 2 + 1 > 9 - 2", lambda r: len(r) * 2 + 1 > 7),
    (
        "count >= 3 AND distinct_user_ids >= 4",
        lambda r: len(r) >= 3 and len(set(known(r, "user_id"))) >= 4,
    ),
    ("distinct(status) > 2", lambda r: len(set(known(r, "status"))) > 2),
    ("distinct(AT) = 3", lambda r: len(set(known(r, "at"))) == 3),
    ("min(amount) < -5", lambda r: any(v < -5 for v in known(r, "amount"))),
    (
        "max(user_id) - min(user_id) >= 6",
        lambda r: (
            bool(known(r, "user_id")) and max(known(r, "user_id")) - min(known(r, "user_id")) >= 6
        ),
    ),
    (
        "sum(amount) BETWEEN 3 AND 4",
        lambda r: bool(known(r, "amount")) and 3 <= sum(known(r, "amount")) <= 4,
    ),
    ("avg(amount) > 4", lambda r: mean(known(r, "amount")) > 4),
    ("NOT avg(amount) <= 4", lambda r: mean(known(r, "amount")) > 4),
    ("avg(user_id) < 2 OR count > 20", lambda r: mean(known(r, "user_id")) < 2 or len(r) > 20),
    ("nulls(amount) >= 2", lambda r: sum(row["amount"] is None for row in r) >= 2),
    (
        "null_rate(status) > 40%",
        lambda r: bool(r) and sum(row["status"] is None for row in r) / len(r) > 0.4,
    ),
    ("any(status = 'error')", lambda r: "error" in known(r, "status")),
    (
        "any(status LIKE 'e%r' AND amount > 0)",
        lambda r: any((row["status"] or "") == "error" and (row["amount"] or 0) > 0 for row in r),
    ),
    (
        "any(status NOT IN ('ok', 'error'))",
        lambda r: any(v not in {"ok", "error"} for v in known(r, "status")),
    ),
    (
        "any(NOT (user_id > 2 OR ok))",
        lambda r: any(
            row["user_id"] is not None and row["user_id"] <= 2 and row["ok"] is False for row in r
        ),
    ),
    ("any(amount IS NULL AND ok)", lambda r: any(row["amount"] is None and row["ok"] for row in r)),
    ("any(user_id / 0 > 1)", lambda _: False),
    (
        "count_if(status = 'error') / count >= 1/3 AND count > 2",
        lambda r: len(r) > 2 and known(r, "status").count("error") / len(r) >= 1 / 3,
    ),
    (
        "count_if(amount + user_id >= 3) >= 3",
        lambda r: (
            sum(
                row["amount"] is not None
                and row["user_id"] is not None
                and row["amount"] + row["user_id"] >= 3
                for row in r
            )
            >= 3
        ),
    ),
    (
        "count_if(user_id BETWEEN 2 AND 3) = 2",
        lambda r: sum(row["user_id"] in {2, 3} for row in r) == 2,
    ),
    ("max(status) = 'ok'", lambda r: bool(known(r, "status")) and max(known(r, "status")) == "ok"),
    ("min(status) < 'f'", lambda r: bool(known(r, "status")) and min(known(r, "status")) < "f"),
    (
        "max(at) >= '2026-01-01T00:00:03'",
        lambda r: any(v >= NOON + dt.timedelta(seconds=3) for v in known(r, "at")),
    ),
    (
        "any(at > '2026-01-01T00:00:05')",
        lambda r: any(v > NOON + dt.timedelta(seconds=5) for v in known(r, "at")),
    ),
    ("NOT any(ok) AND count >= 4", lambda r: len(r) >= 4 and True not in known(r, "ok")),
    ("count IN (5, 9)", lambda r: len(r) in {5, 9}),
    ("TRUE", bool),
    ("FALSE OR count = 2", lambda r: len(r) == 2),
]

row = st.fixed_dictionaries(
    {
        "user_id": st.none() | st.integers(-3, 6),
        "status": st.none() | st.sampled_from(["ok", "error", "late", ""]),
        "amount": st.none() | st.sampled_from([-6.0, -0.5, 0.0, 0.1, 0.2, 3.5, 9.0]),
        "ok": st.none() | st.booleans(),
        "at": st.none() | st.integers(0, 7).map(lambda s: NOON + dt.timedelta(seconds=s)),
    }
)


def first_row(text: str, rows: list[Row], cuts: list[int]) -> int | None:
    """The row, from 1, at which a watch fed with the rows cut at `cuts` first holds."""
    watch = Watch(parse(text), NoOpinion())
    watch.bind(SCHEMA)
    edges = sorted({0, *(cut for cut in cuts if cut < len(rows)), len(rows)})
    for start, end in pairwise(edges):
        batch = pa.RecordBatch.from_pylist(rows[start:end], SCHEMA)
        found = watch.feed(batch, Moment())
        if found is not None:
            return start + found + 1
    return None


@settings(max_examples=120, deadline=None)
@given(
    rows=st.lists(row, max_size=28),
    cuts=st.lists(st.integers(1, 27), max_size=6),
    case=st.sampled_from(ORACLES),
)
def test_incremental_equals_evaluation_of_every_prefix(rows, cuts, case):
    """However the stream is cut, the stop row is the least whose prefix satisfies."""
    text, oracle = case
    least = next((n for n in range(1, len(rows) + 1) if oracle(rows[:n])), None)
    assert first_row(text, rows, cuts) == least


@pytest.mark.parametrize(("text", "oracle"), ORACLES, ids=[text for text, _ in ORACLES])
def test_every_form_on_one_stream(text, oracle):
    statuses = ["ok", "late", None, "error", ""]
    rows = [
        {
            "user_id": n % 8 if n % 5 else None,
            "status": statuses[n * n % 5],
            "amount": n * 0.7 - 6.5 if n % 3 else None,
            "ok": n % 4 == 3,
            "at": NOON + dt.timedelta(seconds=n % 8),
        }
        for n in range(40)
    ]
    least = next((n for n in range(1, 41) if oracle(rows[:n])), None)
    for cuts in ([], [1], [3, 4, 5, 17], list(range(1, 40))):
        assert first_row(text, rows, cuts) == least


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        pytest.param(
            "count >= 30 AND distinct(usr_id) >= 10", 26, "did you mean 'user_id'", id="typo"
        ),
        pytest.param(
            "any(price > 3)",
            5,
            "columns: user_id, status, amount, ok, at",
            id="names-those-there-are",
        ),
        pytest.param("sum(status) > 3", 5, "which is text", id="sum-of-text"),
        pytest.param("any(status > 3)", 5, "cannot compare text with number", id="text-number"),
        pytest.param("max(status) > 3", 15, "cannot compare text with number", id="max-text"),
        pytest.param("any(user_id = 'x')", 5, "cannot compare number with text", id="number-text"),
        pytest.param("any(at > 'noon')", 10, "ISO 8601", id="time"),
        pytest.param("max(at) > 'noon'", 11, "ISO 8601", id="max-time"),
        pytest.param("any(user_id)", 5, "not a boolean", id="not-boolean"),
        pytest.param("converged(nothing)", 11, "no column 'nothing'", id="verdict"),
    ],
)
def test_binding_errors_name_column_and_place(text, column, message):
    predicate = parse(text)
    with pytest.raises(PredicateError) as error:
        Watch(predicate, NoOpinion()).bind(SCHEMA)
    assert message in str(error.value)
    assert error.value.column == column


def test_column_names_match_without_case_unless_both_are_there():
    schema = pa.schema([("ID", pa.int64()), ("id", pa.int64())])
    batch = pa.RecordBatch.from_pydict({"ID": [1, 1], "id": [1, 2]}, schema)
    watch = Watch(parse("distinct(id) = 2"), NoOpinion())
    assert watch.feed(batch, Moment()) == 1


def test_a_column_that_later_records_lack_is_null_there():
    watch = Watch(parse("nulls(a) >= 2"), NoOpinion())
    assert watch.feed(pa.RecordBatch.from_pydict({"a": [1]}), Moment()) is None
    assert watch.feed(pa.RecordBatch.from_pydict({"b": [1, 2, 3]}), Moment()) == 1


def test_time_and_size_are_known_before_any_row():
    watch = Watch(parse("seconds > 3 OR bytes > 10 AND any(x = 1)"), NoOpinion())
    assert not watch.check(Moment(seconds=1))
    assert watch.check(Moment(seconds=4))
    assert not watch.check(Moment(bytes=99))


def test_a_chunks_bytes_hold_for_its_first_row():
    watch = Watch(parse("bytes >= 100"), NoOpinion())
    assert watch.feed(pa.RecordBatch.from_pydict({"a": [1, 2]}), Moment(bytes=100)) == 0


def test_a_verdict_comes_with_the_last_row_of_its_piece():
    class Late(NoOpinion):
        def converged(self, column: str) -> bool:
            return column == "a"

    watch = Watch(parse("converged(A)"), Late())
    assert watch.feed(pa.RecordBatch.from_pydict({"a": [1, 2, 3]}), Moment()) == 2


def test_many_values_are_estimated_and_the_bounds_are_cautious():
    column = Distinct("a", exact=100)
    batch = pa.RecordBatch.from_pydict({"a": list(range(5000))})
    assert column.over(batch)[-1] == 5000.0
    assert column.spread > 0
    estimate = column.over(pa.RecordBatch.from_pydict({"a": list(range(20_000))}))[-1]
    assert estimate == pytest.approx(20_000, rel=4 * column.spread / 2)

from __future__ import annotations

import collections
import datetime as dt
import decimal
import json
import random
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolruns.synopsis.convergence import next_check
from toolruns.synopsis.distinct import DistinctValues
from toolruns.synopsis.hyperloglog import HyperLogLog
from toolruns.synopsis.stream import Synopsis, to_json


def feed(batches, **options):
    synopsis = Synopsis(**options)
    for batch in batches:
        for piece in synopsis.pieces(batch, synopsis.rows):
            synopsis.add(piece)
        synopsis.end_chunk()
    return synopsis


def columns(synopsis):
    return {column["name"]: column for column in to_json(synopsis.view())["columns"]}


def cut(batch, edges):
    edges = sorted({0, *(e for e in edges if e < batch.num_rows), batch.num_rows})
    return [batch.slice(a, b - a) for a, b in pairwise(edges)]


values = st.lists(
    st.fixed_dictionaries(
        {
            "id": st.integers(0, 40) | st.none(),
            "status": st.sampled_from(["a", "b", "c", None]),
            "price": st.floats(-50, 50, width=32) | st.none(),
        }
    ),
    min_size=1,
    max_size=300,
)
SCHEMA = pa.schema([("id", pa.int64()), ("status", pa.string()), ("price", pa.float64())])


@settings(max_examples=40, deadline=None)
@given(rows=values, edges=st.lists(st.integers(1, 299), max_size=9))
def test_exact_parts_are_those_of_the_whole_prefix_however_cut(rows, edges):
    batch = pa.RecordBatch.from_pylist(rows, SCHEMA)
    once, cuts = feed([batch]), feed(cut(batch, edges))
    one, other = to_json(once.view()), to_json(cuts.view())
    for view in (one, other):
        for column in view["columns"]:
            column.pop("quantiles", None)
    assert one == other
    assert other["rows"] == len(rows)
    for name in ("id", "status", "price"):
        known = [row[name] for row in rows if row[name] is not None]
        column = columns(cuts)[name]
        assert column.get("nulls", 0) == len(rows) - len(known)
        assert column.get("distinct") == len(set(known))
        if known:
            assert (column["min"], column["max"]) == (min(known), max(known))
        counts = collections.Counter(known)
        for value, count in column.get("top", []):
            assert counts[value] == count


def test_head_and_sample_come_from_the_stream():
    synopsis = feed([pa.RecordBatch.from_pydict({"n": list(range(1000))})])
    view = synopsis.view()
    assert [row["n"] for row in view.head] == [0, 1, 2, 3, 4]
    assert len({row["n"] for row in view.sample}) == 32


def test_sample_is_fair():
    """Each of 128 rows stands in a sample of 32 a quarter of the time."""
    batch = pa.RecordBatch.from_pydict({"n": list(range(128))})
    taken = collections.Counter(
        row["n"] for seed in range(200) for row in feed([batch], seed=seed).view().sample
    )
    assert set(taken) == set(range(128))
    assert max(taken.values()) < 90
    assert min(taken.values()) > 20


@pytest.mark.parametrize("count", [1, 100, 3000, 50_000, 300_000])
@pytest.mark.parametrize("kind", ["int", "text", "float", "time"])
def test_hyperloglog_stays_in_its_bounds(count, kind):
    make = {
        "int": lambda: pa.array(range(count), pa.int64()),
        "text": lambda: pa.array([f"user-{n}@example.org" for n in range(count)]),
        "float": lambda: pa.array([n * 0.37 for n in range(count)]),
        "time": lambda: pa.array(range(count), pa.timestamp("us")),
    }
    sketch = HyperLogLog()
    array = make[kind]()
    for _ in range(2):  # repeats change nothing
        sketch.add(array)
    assert sketch.estimate() == pytest.approx(count, rel=4 * HyperLogLog.ERROR, abs=1)


def test_hyperloglog_merges_to_the_union():
    left, right, both = HyperLogLog(), HyperLogLog(), HyperLogLog()
    left.add(pa.array(range(5000)))
    right.add(pa.array(range(2500, 9000)))
    both.add(pa.array(range(9000)))
    left.merge(right)
    assert left.estimate() == both.estimate()


def test_long_and_short_strings_hash_by_all_their_bytes():
    texts = ["a" * n for n in range(600)] + ["a" * 400 + "b", "b" + "a" * 400, "a" * 256 + "é"]
    sketch = HyperLogLog()
    sketch.add(pa.array(texts))
    assert sketch.estimate() == pytest.approx(603, rel=0.05)


def test_distinct_overflows_into_an_estimate_and_keeps_the_frequent():
    rng = random.Random(1)
    values = [0 if rng.random() < 0.3 else rng.randrange(1, 3000) for _ in range(60_000)]
    column = DistinctValues(exact=1000)
    for start in range(0, len(values), 4096):
        column.add(pa.array(values[start : start + 4096]))
    assert not column.exact
    assert column.count() == pytest.approx(3000, rel=4 * HyperLogLog.ERROR)
    value, count = column.top(1)[0]
    assert value == 0
    assert count == pytest.approx(0.3 * 60_000, rel=0.1)


def test_values_that_never_repeat_have_no_top():
    assert (
        columns(feed([pa.RecordBatch.from_pydict({"id": list(range(50))})]))["id"].get("top")
        is None
    )


def test_quantiles_stay_in_the_rank_bound():
    rng = random.Random(2)
    data = [rng.gauss(0, 1) + n % 16 for n in range(80_000)]  # a period must not fool the draws
    batches = [
        pa.RecordBatch.from_pydict({"x": data[n : n + 4096]}) for n in range(0, 80_000, 4096)
    ]
    ranked = sorted(data)
    for name, value in columns(feed(batches))["x"]["quantiles"].items():
        rank = sum(v <= value for v in ranked) / len(ranked)
        assert rank == pytest.approx(int(name[1:]) / 100, abs=0.03)


def random_rows(count, make, seed=3):
    rng = random.Random(seed)
    return pa.RecordBatch.from_pydict({"x": [make(rng, n) for n in range(count)]})


@pytest.mark.parametrize(
    ("make", "count", "state"),
    [
        pytest.param(lambda r, _: r.choice("abc"), 256, "converged", id="status"),
        pytest.param(lambda r, _: r.choice("abc"), 128, "settling", id="too-few-rows"),
        pytest.param(lambda r, _: r.randrange(1000), 512, "widening", id="uniform-early"),
        pytest.param(lambda r, _: r.randrange(1000), 16_384, "converged", id="uniform-late"),
        pytest.param(lambda _, n: n, 1024, "ordered", id="ascending"),
        pytest.param(lambda _, n: -n, 1024, "ordered", id="descending"),
        pytest.param(lambda r, _: r.getrandbits(40), 1024, "widening", id="unique"),
        pytest.param(lambda _, n: (n // 16) * 7919 % 99_991, 4096, "widening", id="clustered-keys"),
        pytest.param(
            lambda r, n: r.randrange(9) + 10 * (n >= 2048), 4096, "drifting", id="level-shift"
        ),
        pytest.param(lambda *_: 7, 512, "converged", id="constant"),
    ],
)
def test_states_of_a_column(make, count, state):
    synopsis = feed([random_rows(count, make)], keys=["x"])
    assert synopsis.judgements()["x"].state == state
    assert synopsis.verdict() == state
    assert synopsis.converged("x") is (state == "converged")


def test_states_do_not_depend_on_the_cut():
    batch = random_rows(5000, lambda r, _: r.gauss(5, 1))
    one, other = (
        feed([batch], keys=["x"]),
        feed(cut(batch, [1, 63, 64, 65, 1000, 4095]), keys=["x"]),
    )
    for first, second in zip(one.judgements().values(), other.judgements().values(), strict=True):
        assert first.state == second.state
        assert first.psi == second.psi
        assert first.ci == pytest.approx(second.ci)


def test_checks_fall_due_at_every_doubling():
    due, at = [], 0
    while at < 3000:
        at = next_check(at)
        due.append(at)
    assert due == [64, 128, 256, 512, 1024, 2048, 4096]


def test_worst_key_column_speaks_for_the_stream():
    rng = random.Random(4)
    batch = pa.RecordBatch.from_pydict(
        {
            "a": [rng.choice("xy") for _ in range(512)],
            "b": [rng.getrandbits(40) for _ in range(512)],
        }
    )
    assert feed([batch], keys=["a"]).verdict() == "converged"
    assert feed([batch], keys=["a", "b"]).verdict() == "widening"


def test_hits_settle_when_scores_fall_off():
    def hits(scores):
        return pa.RecordBatch.from_pydict({"score": scores})

    good = feed([hits([0.9, 0.88, 0.87, 0.86, 0.85] * 2)], score="score")
    assert not good.converged("")
    settled = feed([hits([0.9 - n / 100 for n in range(10)]), hits([0.5] * 10)], score="score")
    assert settled.converged("")
    assert settled.top_k_stable(1)
    assert not settled.top_k_stable(2)


def test_order_is_told_and_constant_columns_are_not_ordered():
    batch = pa.RecordBatch.from_pydict({"id": [1, 2, 2, 5], "x": [4, 3, 3, 1], "y": [1, 1, 1, 1]})
    found = columns(feed([batch]))
    assert (found["id"]["order"], found["x"]["order"]) == ("asc", "desc")
    assert "order" not in found["y"]


def test_records_that_are_not_alike():
    first = pa.RecordBatch.from_pydict({"a": [1, 2], "b": ["x", "y"]})
    second = pa.RecordBatch.from_pydict({"a": ["3", "oops"], "c": [True, None]})
    found = columns(feed([first, second]))
    assert found["a"]["mixed"] == 2
    assert found["b"]["nulls"] == 2
    assert found["c"]["nulls"] == 3


def test_every_arrow_type_is_taken():
    batch = pa.RecordBatch.from_pydict(
        {
            "dec": pa.array([decimal.Decimal("1.50"), None]),
            "day": pa.array([dt.date(2026, 1, 1), dt.date(2026, 1, 3)]),
            "clock": pa.array([dt.time(1), dt.time(2)]),
            "zone": pa.array([dt.datetime(2026, 1, 1, tzinfo=dt.UTC)] * 2),
            "list": pa.array([[1, 2], None]),
            "struct": pa.array([{"a": 1}, {"a": 2}]),
            "bin": pa.array([b"\xff", b"\x00"]),
            "dict": pa.array(["x", "y"]).dictionary_encode(),
            "null": pa.nulls(2),
            "flag": pa.array([True, False]),
            "span": pa.array([dt.timedelta(seconds=3)] * 2),
            "nan": pa.array([float("nan"), 1.0]),
            "big": pa.array([2**64 - 1, 0], pa.uint64()),
        }
    )
    view = to_json(feed([batch]).view())
    assert json.dumps(view)
    assert len(view["columns"]) == 13


def test_a_hundred_columns_are_bounded():
    batch = pa.RecordBatch.from_pydict({f"c{n}": [1] for n in range(100)})
    view = feed([batch]).view()
    assert len(view.columns) == 64
    assert "36 more columns are not summarised" in view.notes


@pytest.mark.parametrize(
    "type_",
    [
        pa.timestamp("us", "UTC"),
        pa.timestamp("s"),
        pa.date32(),
        pa.date64(),
        pa.time32("ms"),
        pa.time64("us"),
    ],
    ids=str,
)
def test_times_are_told_as_times(type_):
    day = 86_400_000 if type_ == pa.date64() else 1
    width = pa.int32() if type_.bit_width == 32 else pa.int64()
    array = pa.array([n * day for n in (7, 3, 7, 5)], width).view(type_)
    [column] = feed([pa.RecordBatch.from_arrays([array], ["t"])]).view().columns
    assert (column.min, column.max) == (array[1].as_py(), array[0].as_py())
    assert (column.distinct, column.top[0]) == (3, (array[0].as_py(), 2))

from __future__ import annotations

import datetime as dt
import decimal

import pyarrow as pa
import pytest

from toolruns.sources.records import Records, dig


def test_a_column_keeps_its_type_over_batches():
    records = Records()
    first = records.batch([{"a": 1}, {"a": None}])
    second = records.batch([{"a": None}])
    assert first.schema.field("a").type == second.schema.field("a").type == pa.int64()


def test_integers_widen_to_floats_and_everything_to_text():
    records = Records()
    assert records.batch([{"a": 1}]).column("a").to_pylist() == [1]
    assert records.batch([{"a": 1.5}]).column("a").to_pylist() == [1.5]
    assert records.batch([{"a": 2}]).schema.field("a").type == pa.float64()
    assert records.batch([{"a": "x"}]).column("a").to_pylist() == ["x"]
    assert records.batch([{"a": 2}]).column("a").to_pylist() == ["2"]


def test_records_that_are_not_alike_share_columns():
    records = Records()
    records.batch([{"a": 1}])
    batch = records.batch([{"b": "x"}, 7, "text"])
    assert batch.to_pylist() == [
        {"a": None, "b": "x", "value": None},
        {"a": None, "b": None, "value": "7"},
        {"a": None, "b": None, "value": "text"},
    ]


def test_nested_values_become_json():
    batch = Records().batch([{"a": {"b": [1, None]}, "c": []}])
    assert batch.to_pylist() == [{"a": '{"b":[1,null]}', "c": "[]"}]


@pytest.mark.parametrize(
    "value",
    [
        dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
        dt.date(2026, 1, 1),
        decimal.Decimal("1.25"),
        b"x",
        True,
        2**70,
        float("nan"),
    ],
    ids=str,
)
def test_python_values_of_databases_are_taken(value):
    assert Records().columns(["a"], [[value, None]]).num_rows == 2


def test_dig_follows_keys_and_positions():
    body = {"data": [{"items": [1]}]}
    assert dig(body, "data.0.items") == [1]
    assert dig(body, "") is body
    assert dig(body, "data.9.items") is None
    assert dig(body, "data.x") is None

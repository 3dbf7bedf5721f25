from __future__ import annotations

import json

import pyarrow as pa
import pytest

from tests.toolruns.streams import BUDGET, contract, rows
from toolruns.endings import Ending
from toolruns.machine import ToolRun
from toolruns.signals import Chunk, Exhausted, Return, Stop
from toolruns.snapshot import text_of
from toolruns.synopsis.render import render, short


def result(batch, signal=None):
    run = ToolRun("trj_" + "x" * 22, contract("chunked"), BUDGET)
    run.open(0.0)
    run.feed(Chunk(batch, batch.nbytes), 0.5)
    actions = run.feed(signal or Exhausted(), 1.0)
    return next(action.snapshot for action in actions if isinstance(action, Return))


HOSTILE = [
    pytest.param(rows(64), id="plain"),
    pytest.param(pa.RecordBatch.from_pydict({"t": ["x" * 100_000] * 8}), id="long-text"),
    pytest.param(
        pa.RecordBatch.from_pydict({"t": ["\N{GRINNING FACE}" * 500] * 8}), id="wide-text"
    ),
    pytest.param(
        pa.RecordBatch.from_pydict({f"column_number_{n}": [n] for n in range(300)}), id="columns"
    ),
    pytest.param(pa.RecordBatch.from_pydict({"n" * 5000: [1], "m" * 5000: [2]}), id="long-names"),
    pytest.param(pa.RecordBatch.from_pydict({"t": ['"\\\n\t\x01' * 200] * 8}), id="escapes"),
    pytest.param(
        pa.RecordBatch.from_pydict({"x": [float("inf"), float("nan"), -1e308]}), id="floats"
    ),
    pytest.param(pa.RecordBatch.from_pydict({"d": [{"a": ["b"] * 400}] * 3}), id="nested"),
]


@pytest.mark.parametrize("batch", HOSTILE)
@pytest.mark.parametrize("limit", [2048, 1024, 384])
def test_text_fits_and_is_two_lines_and_json(batch, limit):
    text = text_of(result(batch), 900, limit)
    assert len(text.encode()) <= limit
    first, second, body = text.split("\n", 2)
    assert first.startswith("COMPLETE: ")
    assert "trj_" in second
    assert json.loads(body)["rows"] == batch.num_rows


def test_failure_is_told_in_the_text():
    run = ToolRun("trj_1", contract("chunked"), BUDGET)
    run.open(0.0)
    view = result(rows(3), Stop(Ending.STORE_LIMIT, "row store full"))
    assert text_of(view, 900).startswith("PARTIAL (store_limit) after 3 rows;")


def test_lines_are_cut_when_even_they_do_not_fit():
    assert len(render(["x" * 500], {"rows": 1}, 100).encode()) == 100


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.1 + 0.2, 0.3),
        (1e300, 1e300),
        (float("inf"), "inf"),
        ("x" * 9, "xxxx…"),
        (None, None),
        ([1, 2], "[1,2…"),
    ],
    ids=str,
)
def test_values_are_shortened(value, shown):
    assert short(value, 4) == shown

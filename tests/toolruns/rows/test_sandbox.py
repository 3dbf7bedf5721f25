from __future__ import annotations

import pytest
import pytest_asyncio

from tests.toolruns.streams import rows
from toolruns.rows.drill import DrillLimits
from toolruns.rows.handles import new_handle
from toolruns.rows.sandbox import Sandbox
from toolruns.rows.store import RowStore
from turns.errors import InvalidRequestError


@pytest_asyncio.fixture
async def handle_and_sandbox(tmp_path):
    handle = new_handle()
    RowStore(tmp_path).writer(handle).append(rows(100))
    sandbox = Sandbox(tmp_path, DrillLimits(seconds=2.0), memory=400 * 1024**2)
    yield handle, sandbox
    await sandbox.close()


async def test_queries_and_pages(handle_and_sandbox):
    handle, sandbox = handle_and_sandbox
    found = await sandbox.query(handle, "select count(*) n from rows where status = 'error'")
    assert found.rows == [{"n": 10}]
    found = await sandbox.page(handle, where="amount > 97", columns=["amount"])
    assert found.rows == [{"amount": 98.0}, {"amount": 99.0}]


async def test_refusals_come_through(handle_and_sandbox):
    handle, sandbox = handle_and_sandbox
    with pytest.raises(InvalidRequestError, match="exactly one SELECT"):
        await sandbox.query(handle, "copy rows to '/tmp/x'")
    with pytest.raises(InvalidRequestError, match="longer than"):
        await sandbox.query(handle, "select " + "1+" * 4000 + "1")
    with pytest.raises(InvalidRequestError, match="no column 'x'"):
        await sandbox.page(handle, columns=["x"])


@pytest.mark.parametrize(
    "sql",
    [
        pytest.param("select length(repeat('x', 2000000000))", id="long-string"),
        pytest.param("select length(lpad('x', 1500000000, 'y'))", id="padding"),
        pytest.param("select len(range(200000000 + user_id)) from rows", id="long-list"),
        pytest.param("select list(i) from range(1000000000) t(i)", id="aggregate"),
        pytest.param(
            "select string_agg(repeat('x', 1000000), '') from range(3000)", id="concatenation"
        ),
    ],
)
async def test_blow_ups_end_without_harm(handle_and_sandbox, sql):
    handle, sandbox = handle_and_sandbox
    with pytest.raises(InvalidRequestError):
        await sandbox.query(handle, sql)
    assert (await sandbox.query(handle, "select 1 a")).rows == [{"a": 1}]


async def test_the_process_cannot_write(handle_and_sandbox):
    """Even if SQL found a way to a file, the kernel lets none grow."""
    handle, sandbox = handle_and_sandbox
    process = await sandbox._start()
    out, _ = await process.communicate(b"not json\n")
    assert (out, process.returncode) == (b"", 1)
    assert (await sandbox.query(handle, "select 1 a")).rows

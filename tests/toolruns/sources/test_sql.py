from __future__ import annotations

import asyncio
import sqlite3
import threading
import time

import duckdb
import pytest

from tests.toolruns.sources.play import Watching, play, read_all
from toolruns.endings import Ending
from toolruns.sources.duckdb_query import DuckdbQuery
from toolruns.sources.source import InThread, SourceError
from toolruns.sources.sqlite_query import SqliteQuery, unique

ROWS = 20_000
ENDLESS = "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT max(n) FROM t"


@pytest.fixture(scope="module")
def sqlite_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("sqlite") / "shop.db"
    with sqlite3.connect(path) as con:
        con.execute("CREATE TABLE orders (id INTEGER, user_id INTEGER, status TEXT, price REAL)")
        con.executemany(
            "INSERT INTO orders VALUES (?, ?, ?, ?)",
            ((n, n % 700, "open" if n % 3 else None, n / 7) for n in range(ROWS)),
        )
    con.close()
    return path


@pytest.fixture(scope="module")
def duckdb_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("duckdb") / "shop.duckdb"
    with duckdb.connect(str(path)) as con:
        con.execute(
            f"CREATE TABLE orders AS SELECT i AS id, i % 700 AS user_id, i / 7 AS price, "
            f"CASE WHEN i % 3 = 0 THEN NULL ELSE 'open' END AS status FROM range({ROWS}) t(i)"
        )
    return path


@pytest.fixture(params=["sqlite", "duckdb"])
def query(request):
    path = request.getfixturevalue(f"{request.param}_file")
    make = {"sqlite": SqliteQuery, "duckdb": DuckdbQuery}[request.param]
    return lambda sql, parameters=None: InThread(make(path, sql, parameters))


async def test_all_rows_come_in_order(query):
    found = await read_all(query("SELECT id, status FROM orders ORDER BY id"), 777)
    assert [row["id"] for row in found] == list(range(ROWS))
    assert found[3]["status"] is None


async def test_predicate_stops_after_a_few_rows_and_the_source_is_closed(query):
    source = Watching(query("SELECT * FROM orders ORDER BY id"))
    live, view, ending = await play(source, "count >= 30 AND distinct(user_id) >= 10")
    assert ending is Ending.PREDICATE_SATISFIED
    assert (source.rows, view["rows"], view["predicate"]["satisfied_at_row"]) == (32, 32, 30)
    assert (source.opened, source.closed) == (1, 1)
    assert live.closed_in < 0.25


async def test_exhausted_is_complete(query):
    _, view, ending = await play(query("SELECT * FROM orders WHERE id < 100"))
    assert ending is Ending.EXHAUSTED
    assert (view["complete"], view["rows"]) == (True, 100)


@pytest.mark.parametrize("count", [0, 1, 32, 33])
async def test_counts_around_the_first_pull(query, count):
    _, view, ending = await play(query(f"SELECT * FROM orders WHERE id < {count}"))
    assert (ending, view["rows"]) == (Ending.EXHAUSTED, count)


async def test_a_query_that_computes_for_ever_is_interrupted(query):
    live, view, ending = await play(query(ENDLESS), seconds=0.3)
    assert ending is Ending.BUDGET_WALL_CLOCK
    assert view["rows"] == 0
    assert live.closed_in < 0.5  # 250 ms, and what a loaded machine adds
    busy = [t for t in threading.enumerate() if t.name.startswith("source") and t.is_alive()]
    for thread in busy:
        thread.join(5)
        assert not thread.is_alive()


async def test_parameters_are_values_not_sql(query):
    place = "$who" if "Duckdb" in repr(type(query("SELECT 1")._cursor)) else ":who"
    found = await read_all(
        query(f"SELECT id FROM orders WHERE status = {place}", {"who": "' OR 1=1 --"})
    )
    assert found == []


@pytest.mark.parametrize(
    "sql",
    [
        pytest.param("DELETE FROM orders", id="delete"),
        pytest.param("UPDATE orders SET id = 0", id="update"),
        pytest.param("INSERT INTO orders (id) VALUES (1)", id="insert"),
        pytest.param("DROP TABLE orders", id="drop"),
        pytest.param("CREATE TABLE x AS SELECT 1", id="create"),
        pytest.param("ATTACH '/tmp/treadle-attack.db' AS x", id="attach"),
        pytest.param("PRAGMA writable_schema = 1", id="pragma"),
        pytest.param("UPDATE sqlite_master SET sql = 'x'", id="schema"),
        pytest.param("SELECT 1; DELETE FROM orders", id="two"),
        pytest.param("VACUUM INTO '/tmp/treadle-attack.db'", id="vacuum"),
        pytest.param("SELECT load_extension('/tmp/x.so')", id="extension"),
        pytest.param("SELECT readfile('/etc/passwd')", id="readfile"),
        pytest.param("SELECT writefile('/tmp/x', 'x')", id="writefile"),
        pytest.param("SELECT * FROM read_csv('/etc/passwd')", id="read-csv"),
        pytest.param("COPY orders TO '/tmp/treadle-attack.csv'", id="copy"),
        pytest.param("INSTALL httpfs", id="install"),
        pytest.param("SET enable_external_access = true", id="set"),
        pytest.param("BEGIN", id="begin"),
        pytest.param("SELEC", id="syntax"),
        pytest.param("SELECT nothing FROM orders", id="column"),
        pytest.param("", id="empty"),
    ],
)
async def test_only_reading_is_allowed(query, sql):
    _, view, ending = await play(query(sql))
    assert ending is Ending.UPSTREAM_ERROR
    assert view["notes"]
    assert len(await read_all(query("SELECT id FROM orders"), 8192)) == ROWS


async def test_a_missing_database_is_an_error_and_is_not_created(tmp_path):
    for make in (SqliteQuery, DuckdbQuery):
        with pytest.raises(SourceError):
            await read_all(InThread(make(tmp_path / "none.db", "SELECT 1")))
    assert list(tmp_path.iterdir()) == []


async def test_closing_a_source_that_was_never_opened_or_twice(query):
    source = query("SELECT 1")
    await source.close()
    await source.close()
    with pytest.raises(SourceError, match="closed"):
        await source.read(1)


async def test_interrupted_midway_by_a_cancel(query):
    source = Watching(query("SELECT a.id FROM orders a, orders b"))
    live, view, ending = await play(source, cancel_after=0.2, rows=10**9, bytes=10**12)
    assert ending is Ending.CANCELLED
    assert source.closed == 1
    assert view["rows"] < ROWS * ROWS
    assert live.closed_in < 0.5


def test_repeated_column_names_are_told_apart():
    assert unique(["id", "id", "x", "id"]) == ["id", "id_2", "x", "id_3"]


async def test_an_interrupt_that_comes_too_early_is_not_lost():
    """Closing while the cursor still opens: the statement begins after the first interrupt."""
    began, interrupts = threading.Event(), []

    class Slow:
        def open(self):
            began.wait(10)
            self.read(1)

        def read(self, rows):
            before = len(interrupts)
            while len(interrupts) == before:
                time.sleep(0.01)

        def interrupt(self):
            interrupts.append(1)
            began.set()

        def close(self):
            interrupts.append("closed")

    source = InThread(Slow())
    opening = asyncio.create_task(source.open())
    await asyncio.sleep(0)
    await source.close()
    async with asyncio.timeout(10):
        await opening
    source._pool.shutdown(wait=True)
    assert interrupts[-1] == "closed"

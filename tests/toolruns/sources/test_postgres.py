from __future__ import annotations

import psycopg
import pytest

from tests.toolruns.sources.play import Watching, play, read_all
from toolruns.endings import Ending
from toolruns.sources.postgres_query import PostgresQuery
from toolruns.sources.source import InThread, SourceError

ROWS = 20_000


@pytest.fixture(scope="module")
def dsn(postgres_dsn):
    with psycopg.connect(postgres_dsn, autocommit=True) as con:
        con.execute("DROP TABLE IF EXISTS orders")
        con.execute(
            f"CREATE TABLE orders AS SELECT i AS id, i % 700 AS user_id, i / 7.0 AS price, "
            f"now() AS at, jsonb_build_object('n', i) AS more FROM generate_series(0, {ROWS - 1}) i"
        )
    return postgres_dsn


def query(dsn, sql, parameters=None):
    return InThread(PostgresQuery(dsn, sql, parameters))


def activity(dsn):
    """Statements that our application has open on the server."""
    with psycopg.connect(dsn) as con:
        sql = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'treadle'"
        return con.execute(sql).fetchone()[0]


async def test_all_rows_come(dsn):
    found = await read_all(query(dsn, "SELECT id, more FROM orders ORDER BY id"), 3000)
    assert [row["id"] for row in found] == list(range(ROWS))
    assert found[5]["more"] == '{"n":5}'


async def test_the_server_computes_only_what_is_fetched(dsn):
    with psycopg.connect(dsn, autocommit=True) as con:
        con.execute("DROP SEQUENCE IF EXISTS pulled")
        con.execute("CREATE SEQUENCE pulled")
        con.execute(
            "CREATE OR REPLACE FUNCTION spy(n int) RETURNS int LANGUAGE sql VOLATILE AS 'SELECT n'"
        )
    watched = Watching(query(dsn, "SELECT spy(id) AS id, user_id, price FROM orders"))
    live, view, ending = await play(watched, "count >= 30 AND distinct(user_id) >= 10")
    assert ending is Ending.PREDICATE_SATISFIED
    assert (watched.rows, view["rows"]) == (32, 32)
    assert watched.closed == 1
    assert live.closed_in < 0.25
    assert activity(dsn) == 0


async def test_a_statement_that_runs_for_ever_is_cancelled_on_the_server(dsn):
    live, _, ending = await play(query(dsn, "SELECT pg_sleep(600)"), seconds=0.5)
    assert ending is Ending.BUDGET_WALL_CLOCK
    assert live.closed_in < 0.5
    live._source._pool.shutdown(wait=True)
    assert activity(dsn) == 0


async def test_the_statement_timeout_holds_on_the_server(dsn):
    source = InThread(PostgresQuery(dsn, "SELECT pg_sleep(60)", statement_seconds=0.2))
    with pytest.raises(SourceError, match="statement timeout"):
        await read_all(source)
    await source.close()


@pytest.mark.parametrize(
    "sql",
    [
        pytest.param("DELETE FROM orders", id="delete"),
        pytest.param("UPDATE orders SET id = 0", id="update"),
        pytest.param("DROP TABLE orders", id="drop"),
        pytest.param("CREATE TABLE x (a int)", id="create"),
        pytest.param("COPY orders TO '/tmp/treadle-attack'", id="copy"),
        pytest.param("COPY orders TO PROGRAM 'true'", id="program"),
        pytest.param("SELECT 1; DELETE FROM orders", id="two"),
        pytest.param("SELECT 1) TO x; DELETE FROM orders; --", id="break-out"),
        pytest.param(
            "WITH x AS (DELETE FROM orders RETURNING id) SELECT * FROM x", id="delete-in-cte"
        ),
        pytest.param("SELECT * INTO x FROM orders", id="into"),
        pytest.param("SELECT nextval('pulled')", id="nextval"),
        pytest.param("SET transaction_read_only = off", id="set"),
        pytest.param("COMMIT", id="commit"),
        pytest.param("LISTEN x", id="listen"),
        pytest.param("VACUUM", id="vacuum"),
        pytest.param("CALL x()", id="call"),
        pytest.param("DO $$ BEGIN END $$", id="do"),
        pytest.param("SELECT nothing FROM orders", id="column"),
        pytest.param("", id="empty"),
    ],
)
async def test_only_reading_is_allowed(dsn, sql):
    with psycopg.connect(dsn, autocommit=True) as con:
        con.execute("CREATE SEQUENCE IF NOT EXISTS pulled")
    _, view, ending = await play(query(dsn, sql))
    assert ending is Ending.UPSTREAM_ERROR
    assert view["notes"]
    with psycopg.connect(dsn) as con:
        assert con.execute("SELECT count(*) FROM orders").fetchone()[0] == ROWS


async def test_parameters_are_values(dsn):
    sql = "SELECT id FROM orders WHERE id < %(most)s"
    assert len(await read_all(query(dsn, sql, {"most": 3}))) == 3


async def test_a_database_that_is_away_does_not_tell_its_address(free_port):
    with pytest.raises(SourceError, match="the database cannot be reached"):
        await read_all(
            query(f"host=127.0.0.1 port={free_port} user=x password=hunter2", "SELECT 1")
        )

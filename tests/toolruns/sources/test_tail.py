from __future__ import annotations

import asyncio
import sqlite3

import pytest

from tests.toolruns.sources.play import Watching, play
from toolruns.endings import Ending
from toolruns.sources.polled import Polled
from toolruns.sources.source import SourceError
from toolruns.sources.sqlite_query import SqliteQuery
from toolruns.sources.tail import FileTail, RedisStream

BOUND = 10


async def lines_of(tail, count):
    """The next `count` lines, however many reads they take."""
    found = []
    async with asyncio.timeout(BOUND):
        while len(found) < count:
            found += (await tail.read(100)).batch.to_pylist()
    return [row.get("line") for row in found]


async def test_a_planted_error_stops_the_tail(tmp_path):
    log = tmp_path / "app.log"
    log.write_text(
        "".join(f'{{"level":"INFO","n":{n}}}\n' for n in range(40)) + '{"level":"ERROR","n":40}\n'
    )
    watched = Watching(FileTail(log, from_start=True))
    live, view, ending = await play(watched, "any(level = 'ERROR')", mode="unbounded")
    assert ending is Ending.PREDICATE_SATISFIED
    assert view["predicate"]["satisfied_at_row"] == 41
    assert watched.closed == 1
    assert live.closed_in < 0.25


async def test_a_silent_tail_ends_idle(tmp_path):
    log = tmp_path / "app.log"
    log.write_text("old\n")
    _, view, ending = await play(FileTail(log), mode="unbounded", idle_seconds=0.2)
    assert (ending, view["rows"]) == (Ending.IDLE_TIMEOUT, 0)


async def test_only_whole_lines_are_given(tmp_path):
    log = tmp_path / "app.log"
    log.write_text("")
    tail = FileTail(log)
    await tail.open()
    with log.open("a") as file:
        file.write("one\ntw")
        file.flush()
        assert await lines_of(tail, 1) == ["one"]
        file.write("o\n")
        file.flush()
        assert await lines_of(tail, 1) == ["two"]
    await tail.close()


async def test_rotation_and_truncation_are_followed(tmp_path):
    log = tmp_path / "app.log"
    log.write_text("a\n")
    tail = FileTail(log, from_start=True)
    await tail.open()
    assert await lines_of(tail, 1) == ["a"]
    log.rename(tmp_path / "app.log.1")
    log.write_text("b\nbb\n")
    assert await lines_of(tail, 2) == ["b", "bb"]
    log.write_text("c\n")
    assert await lines_of(tail, 1) == ["c"]
    await tail.close()


async def test_a_later_run_goes_on_where_the_last_stopped(tmp_path):
    log = tmp_path / "app.log"
    log.write_text("a\nb\nc\n")
    live, _, _ = await play(FileTail(log, from_start=True), "count >= 2", mode="unbounded")
    with log.open("a") as file:
        file.write("d\n")
    tail = FileTail(log, live.run.cursor)
    await tail.open()
    assert await lines_of(tail, 1) == ["d"]
    await tail.close()


@pytest.mark.parametrize("cursor", ["1:2", "x", ":", "99:99999", "0:-5"])
async def test_a_cursor_of_another_file_reads_from_the_beginning(tmp_path, cursor):
    log = tmp_path / "app.log"
    log.write_text("a\n")
    tail = FileTail(log, cursor)
    await tail.open()
    assert await lines_of(tail, 1) == ["a"]
    await tail.close()


async def test_an_endless_line_is_cut(tmp_path):
    log = tmp_path / "app.log"
    log.write_text("x" * 200_000)
    tail = FileTail(log, from_start=True)
    await tail.open()
    assert [len(line) for line in await lines_of(tail, 3)] == [65_536] * 3
    await tail.close()


async def test_a_missing_file_is_an_error(tmp_path):
    with pytest.raises(SourceError, match="not there"):
        await FileTail(tmp_path / "none.log").open()


@pytest.fixture
def events(tmp_path):
    path = tmp_path / "events.db"
    con = sqlite3.connect(path)
    con.execute("CREATE TABLE events (id INTEGER PRIMARY KEY, kind TEXT)")
    con.executemany("INSERT INTO events (kind) VALUES (?)", [(f"k{n}",) for n in range(10)])
    con.commit()
    yield path, con
    con.close()


def polled(path, cursor="", start=0):
    sql = "SELECT * FROM events WHERE id > :cursor ORDER BY id LIMIT :rows"
    return Polled(lambda p: SqliteQuery(path, sql, p), "id", cursor=cursor, start=start, pause=0.01)


async def test_a_growing_table_is_a_stream(events):
    path, con = events
    source = polled(path)
    assert (await source.read(4)).cursor == "4"
    assert (await source.read(100)).batch.num_rows == 6
    waiting = asyncio.create_task(source.read(100))
    con.execute("INSERT INTO events (kind) VALUES ('late')")
    con.commit()
    async with asyncio.timeout(BOUND):
        assert (await waiting).batch.to_pylist() == [{"id": 11, "kind": "late"}]
    await source.close()


async def test_consumption_goes_on_at_the_cursor(events):
    path, _ = events
    live, view, ending = await play(polled(path), "count >= 3", mode="unbounded", rows=5)
    assert ending is Ending.PREDICATE_SATISFIED
    again = polled(path, live.run.cursor)
    assert (await again.read(100)).batch.column("id").to_pylist() == list(
        range(view["rows"] + 1, 11)
    )


async def test_the_key_must_be_there(events):
    path, _ = events
    source = Polled(
        lambda p: SqliteQuery(path, "SELECT kind FROM events WHERE id > :cursor LIMIT :rows", p),
        "id",
    )
    with pytest.raises(SourceError, match="no column 'id'"):
        await source.read(3)


async def test_a_redis_stream_is_followed_and_resumed(redis_url):
    redis = pytest.importorskip("redis.asyncio")
    client = redis.from_url(redis_url)
    await client.delete("orders")
    await client.xadd("orders", {"n": "old"})
    source = RedisStream(lambda: redis.from_url(redis_url), "orders")
    await source.open()
    await client.xadd("orders", {"n": "1", "who": "a"})
    await client.xadd("orders", {"n": "2"})
    async with asyncio.timeout(BOUND):
        chunk = await source.read(10)
    await source.close()
    assert [row["n"] for row in chunk.batch.to_pylist()] == ["1", "2"]
    await client.xadd("orders", {"n": "3"})
    again = RedisStream(lambda: redis.from_url(redis_url), "orders", chunk.cursor)
    await again.open()
    async with asyncio.timeout(BOUND):
        assert (await again.read(10)).batch.to_pylist()[0]["n"] == "3"
    await again.close()
    await client.aclose()


async def test_a_redis_that_is_away_is_an_error():
    redis = pytest.importorskip("redis.asyncio")
    source = RedisStream(lambda: redis.Redis(port=1, socket_connect_timeout=1), "orders")
    _, view, ending = await play(source, mode="unbounded")
    assert ending is Ending.UPSTREAM_ERROR
    assert "cannot be" in view["notes"][-1]

from __future__ import annotations

import pyarrow as pa
import pytest
import pytest_asyncio

from tests.toolruns.streams import rows
from toolruns.rows.books import FolderBook, RedisBook
from toolruns.rows.handles import Record, UnknownHandleError, is_handle, new_handle
from toolruns.rows.keeper import Keeper
from toolruns.rows.store import Limits, RowStore, StoreFullError
from toolruns.signals import Note
from toolruns.trajectory import Recorder


class Wall:
    def __init__(self) -> None:
        self.now = 1_000_000_000.0 + 1e9  # far enough ahead that Redis does not expire keys itself

    def __call__(self) -> float:
        return self.now


@pytest_asyncio.fixture(params=["folder", "redis"])
async def book(request, tmp_path):
    if request.param == "folder":
        yield FolderBook(tmp_path / "rows")
        return
    redis = pytest.importorskip("redis.asyncio")
    server = request.getfixturevalue("redis_url")
    client = redis.from_url(server)
    await client.flushdb()
    yield RedisBook(client)
    await client.aclose()


@pytest.fixture
def wall():
    return Wall()


@pytest.fixture
def keeper(book, tmp_path, wall):
    limits = Limits(bytes=100_000, rows=1000, owner_bytes=5000)
    return Keeper(book, RowStore(tmp_path / "rows", limits), node="here", wall=wall)


async def test_a_handle_is_for_its_owner_alone(keeper):
    record = await keeper.create("alice", "orders", 900)
    assert (await keeper.check(record.handle, "alice")).tool == "orders"
    answers = set()
    for handle, owner in [
        (record.handle, "bob"),
        (new_handle(), "alice"),
        ("trj_../../etc", "alice"),
    ]:
        with pytest.raises(UnknownHandleError) as error:
            await keeper.check(handle, owner)
        answers.add((error.value.message, error.value.param, error.value.kind))
    assert len(answers) == 1


async def test_a_handle_expires_and_use_prolongs_it(keeper, wall):
    record = await keeper.create("alice", "orders", 100)
    wall.now += 90
    await keeper.check(record.handle, "alice", ttl=100)
    wall.now += 90
    await keeper.check(record.handle, "alice")
    wall.now += 11
    with pytest.raises(UnknownHandleError):
        await keeper.check(record.handle, "alice")


async def test_no_use_prolongs_beyond_the_longest_life(keeper, wall):
    record = await keeper.create("alice", "orders", 900)
    for _ in range(8):
        wall.now += 800
        await keeper.check(record.handle, "alice", ttl=900)
    wall.now += 800
    with pytest.raises(UnknownHandleError):
        await keeper.check(record.handle, "alice", ttl=900)


async def test_sweeping_drops_rows_and_records(keeper, wall):
    record = await keeper.create("alice", "orders", 100)
    keeper.store.writer(record.handle).append(rows(3))
    wall.now += 101
    assert await keeper.sweep() == [record.handle]
    assert list(keeper.store.root.glob(f"{record.handle}/*")) == []
    assert await keeper.sweep() == []


async def test_closing_drops_at_once(keeper):
    record = await keeper.create("alice", "orders", 100)
    keeper.store.writer(record.handle).append(rows(3))
    await keeper.close(record)
    with pytest.raises(UnknownHandleError):
        await keeper.check(record.handle, "alice")
    assert not (keeper.store.root / record.handle).exists()


async def test_the_owners_oldest_ended_handles_give_way(keeper, wall):
    kept = []
    for _ in range(3):
        wall.now += 1
        record = await keeper.create("alice", "orders", 900)
        record.bytes, record.status = 2000, "ended"
        await keeper.update(record)
        kept.append(record)
    other = await keeper.create("bob", "orders", 900)
    fresh = await keeper.create("alice", "orders", 900)
    with pytest.raises(UnknownHandleError):
        await keeper.check(kept[0].handle, "alice")
    for record, owner in [(kept[1], "alice"), (kept[2], "alice"), (fresh, "alice"), (other, "bob")]:
        await keeper.check(record.handle, owner)


async def test_running_calls_do_not_give_way(keeper):
    record = await keeper.create("alice", "orders", 900)
    record.bytes = 6000
    await keeper.update(record)
    with pytest.raises(StoreFullError, match="close some handles"):
        await keeper.create("alice", "orders", 900)
    assert await keeper.create("bob", "orders", 900)


async def test_records_survive_a_restart(tmp_path, wall):
    store = RowStore(tmp_path)
    first = Keeper(FolderBook(tmp_path), store, wall=wall)
    record = await first.create("alice", "orders", 900)
    writer = store.writer(record.handle)
    writer.append(rows(5))
    (tmp_path / new_handle()).mkdir()
    (tmp_path / "trj_strange").mkdir()
    (tmp_path / "trj_strange" / "meta.json").write_text("{")
    again = Keeper(FolderBook(tmp_path), RowStore(tmp_path), wall=wall)
    assert (await again.check(record.handle, "alice")).handle == record.handle
    assert again.store.table(record.handle).num_rows == 5


def test_handles_are_unguessable_and_never_paths():
    handles = {new_handle() for _ in range(100)}
    assert len(handles) == 100
    assert all(is_handle(handle) for handle in handles)
    for evil in [
        "",
        "trj_",
        "trj_" + "." * 22,
        "trj_" + "a" * 23,
        "../etc",
        "trj_" + "a" * 22 + "\n",
        None,
        3,
        "TRJ_" + "a" * 22,
    ]:
        assert not is_handle(evil)


def test_the_store_takes_only_handles(tmp_path):
    store = RowStore(tmp_path)
    for evil in ["../x", "trj_" + "/" * 22, ""]:
        for use in (store.writer, store.table, store.events, store.drop):
            with pytest.raises(UnknownHandleError):
                use(evil)
    assert list(tmp_path.iterdir()) == []


def test_rows_come_back_as_they_went(tmp_path):
    store, handle = RowStore(tmp_path), new_handle()
    writer = store.writer(handle)
    references = [writer.append(rows(10, n * 10)) for n in range(3)]
    assert store.table(handle).to_pylist() == rows(30).to_pylist()
    writer.close()
    assert [r.batch for r in references] == [0, 1, 2]
    assert store.table(handle).to_pylist() == rows(30).to_pylist()
    assert references[0].digest != references[1].digest


def test_segments_of_other_schemas(tmp_path):
    store, handle = RowStore(tmp_path), new_handle()
    writer = store.writer(handle)
    writer.append(pa.RecordBatch.from_pydict({"a": [1], "b": ["x"]}))
    writer.append(pa.RecordBatch.from_pydict({"a": [2.5], "c": [True]}))
    assert store.table(handle).to_pylist() == [
        {"a": 1.0, "b": "x", "c": None},
        {"a": 2.5, "b": None, "c": True},
    ]
    writer.append(pa.RecordBatch.from_pydict({"a": ["text"]}))
    assert store.table(handle).column("a").to_pylist() == ["1", "2.5", "text"]


def test_a_torn_segment_is_read_as_far_as_it_goes(tmp_path):
    store, handle = RowStore(tmp_path), new_handle()
    writer = store.writer(handle)
    writer.append(rows(10))
    path = next((tmp_path / handle).glob("*.arrows"))
    whole = path.stat().st_size
    writer.append(rows(10))
    with path.open("r+b") as file:
        file.truncate(whole + 20)
    assert store.table(handle).num_rows == 10
    with path.open("r+b") as file:
        file.truncate(5)
    assert store.table(handle).num_rows == 0


@pytest.mark.parametrize(
    ("limits", "message"),
    [(Limits(rows=15), "more than 15 rows"), (Limits(bytes=300), "0 MB of rows")],
    ids=["rows", "bytes"],
)
def test_limits_hold_before_anything_is_written(tmp_path, limits, message):
    store, handle = RowStore(tmp_path, limits), new_handle()
    writer = store.writer(handle)
    writer.append(rows(10))
    with pytest.raises(StoreFullError, match=message):
        writer.append(rows(10))
    assert store.table(handle).num_rows == 10


def test_events_are_kept_line_by_line(tmp_path):
    store, handle = RowStore(tmp_path), new_handle()
    writer, recorder = store.writer(handle), Recorder(handle, 0.0)
    writer.note(recorder.record(Note("trajectory.opened"), 0.0))
    writer.note(recorder.record(Note("chunk.received", {"rows": 3}), 0.5))
    with (tmp_path / handle / "events.jsonl").open("ab") as file:
        file.write(b'{"torn":')
    assert [(e.seq, e.type) for e in store.events(handle)] == [
        (0, "trajectory.opened"),
        (1, "chunk.received"),
    ]


def test_a_note_on_what_is_closed_just_then_is_nowhere(tmp_path, monkeypatch):
    store, handle = RowStore(tmp_path), new_handle()
    store.writer(handle).note(Recorder(handle, 0.0).record(Note("trajectory.opened"), 0.0))
    seen = store.events(handle)
    store.note(handle, Note("result.returned", {"bytes": 2}), 1.0)
    assert [entry.type for entry in store.events(handle)] == [
        "trajectory.opened",
        "result.returned",
    ]
    store.drop(handle)
    monkeypatch.setattr(store, "events", lambda _: seen)  # read before it was closed
    store.note(handle, Note("result.returned", {"bytes": 2}), 1.0)
    assert not (tmp_path / handle).exists()


def test_a_record_is_small():
    assert Record(new_handle(), "a", "t", 0, 0, 0, 0).status == "running"

from __future__ import annotations

import duckdb
import pytest

from toolruns.sources.duckdb_instances import Instances

SETTINGS = ("1GB", 2)


def database(path, rows):
    with duckdb.connect(str(path)) as con:
        con.execute(f"CREATE OR REPLACE TABLE t AS SELECT i, 'x' || i AS s FROM range({rows}) r(i)")
    return path


def count(instances, path):
    instance = instances.take(path, *SETTINGS)
    connection = instance.connect()
    found = connection.execute("SELECT count(*) FROM t").fetchone()[0]
    instance.leave(connection)
    instances.give(instance)
    return found


def test_a_file_may_be_written_between_calls_and_is_read_afresh(tmp_path):
    instances = Instances()
    path = database(tmp_path / "shop.duckdb", 10)
    assert count(instances, path) == 10
    database(path, 20)
    assert count(instances, path) == 20


def test_calls_share_an_instance_and_the_file_stays_until_the_last_leaves(tmp_path):
    instances = Instances()
    path = database(tmp_path / "shop.duckdb", 10)
    first, second = (instances.take(path, *SETTINGS) for _ in range(2))
    assert first is second
    one, two = first.connect(), second.connect()
    first.leave(one)
    assert two.execute("SELECT count(*) FROM t").fetchone() == (10,)
    second.leave(two)


def test_a_file_that_is_missing_at_first_is_found_later(tmp_path):
    instances = Instances()
    path = tmp_path / "shop.duckdb"
    instance = instances.take(path, *SETTINGS)
    with pytest.raises(duckdb.Error):
        instance.connect()
    instances.give(instance)
    assert not path.exists()
    database(path, 3)
    assert count(instances, path) == 3


@pytest.mark.parametrize("name", ["memory", "temp", "a b", 'q"uote', "o'clock", "main"])
def test_any_name_of_a_file_will_do(tmp_path, name):
    assert count(Instances(), database(tmp_path / f"{name}.duckdb", 4)) == 4


def test_only_so_many_idle_instances_stay_up(tmp_path):
    instances = Instances(kept=1)
    paths = [database(tmp_path / f"{n}.duckdb", n) for n in range(3)]
    busy = instances.take(paths[0], *SETTINGS)
    connection = busy.connect()
    assert [count(instances, path) for path in paths[1:]] == [1, 2]
    assert connection.execute("SELECT count(*) FROM t").fetchone() == (0,)
    assert instances.take(paths[0], *SETTINGS) is busy
    busy.leave(connection)


def test_a_limit_streams(tmp_path):
    """The optimizer's other plan reads every row before the first is given."""
    instances = Instances()
    instance = instances.take(database(tmp_path / "shop.duckdb", 60_000), *SETTINGS)
    connection = instance.connect()
    plan = connection.execute("EXPLAIN SELECT i, s FROM t LIMIT 50000").fetchone()[1]
    assert "Streaming Limit" in plan
    assert "Order By" not in plan
    instance.leave(connection)

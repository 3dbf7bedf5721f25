from __future__ import annotations

import json
import time

import pyarrow as pa
import pytest

from toolruns.rows.drill import MAX_BYTES, MAX_ROWS, DrillLimits, page, query
from turns.errors import InvalidRequestError

TABLE = pa.table(
    {
        "id": list(range(200)),
        "Status": ["error" if n % 10 == 9 else "ok" for n in range(200)],
        "note": ["it's; -- fine" for _ in range(200)],
    }
)
QUICK = DrillLimits(seconds=0.5, memory="64MB")


def test_one_select_over_rows():
    found = query(TABLE, "select Status, count(*) n from rows group by 1 order by 2")
    assert found.rows == [{"Status": "error", "n": 20}, {"Status": "ok", "n": 180}]
    assert not found.more


def test_output_is_bounded_and_says_so():
    found = query(TABLE, "select id from rows")
    assert (len(found.rows), found.more) == (MAX_ROWS, True)
    wide = query(TABLE, "select repeat('x', 100000) a, id from rows")
    assert wide.more
    assert len(wide.text().encode()) <= MAX_BYTES
    assert wide.text().startswith(f"{len(wide.rows)} rows (cut: there are more)")


def test_values_of_every_kind_are_json():
    found = query(
        TABLE,
        "select [1,2] l, {'a': 1} s, '2026-01-01'::timestamp t, 1.5::decimal d, 'a'::blob b, null n, 'nan'::double x",
    )
    assert json.loads(found.text().split("\n")[1])["l"] == "[1,2]"


@pytest.mark.parametrize(
    "sql",
    [
        pytest.param("select * from read_csv('/etc/passwd')", id="read-csv"),
        pytest.param("select * from read_text('/etc/hostname')", id="read-text"),
        pytest.param("select * from read_blob('/proc/self/environ')", id="environ"),
        pytest.param("select * from '/etc/passwd'", id="path-as-table"),
        pytest.param("select * from glob('/*')", id="glob"),
        pytest.param("select * from parquet_metadata('/x')", id="parquet"),
        pytest.param(
            "select * from read_csv('http://169.254.169.254/latest')", id="metadata-service"
        ),
        pytest.param("select * from 'http://127.0.0.1:8000/'", id="loopback"),
        pytest.param("copy rows to '/tmp/treadle-attack.csv'", id="copy-to"),
        pytest.param("copy (select 1) to '/dev/stdout'", id="copy-stdout"),
        pytest.param("export database '/tmp/treadle-attack'", id="export"),
        pytest.param("attach '/tmp/treadle-attack.db'", id="attach"),
        pytest.param("attach ':memory:' as x", id="attach-memory"),
        pytest.param("install httpfs", id="install"),
        pytest.param("load httpfs", id="load"),
        pytest.param("set enable_external_access = true", id="set"),
        pytest.param("reset enable_external_access", id="reset"),
        pytest.param("pragma enable_external_access=true", id="pragma-set"),
        pytest.param("pragma database_list", id="pragma"),
        pytest.param("call pragma_version()", id="call"),
        pytest.param("select 1; select 2", id="two-statements"),
        pytest.param("select 1; copy rows to '/tmp/x'", id="second-writes"),
        pytest.param("create table x as select * from rows", id="create"),
        pytest.param("create macro f() as 1", id="macro"),
        pytest.param("create secret (type s3)", id="secret"),
        pytest.param("delete from rows", id="delete"),
        pytest.param(
            "with x as (delete from rows returning *) select * from x", id="delete-in-cte"
        ),
        pytest.param("update rows set id = 0", id="update"),
        pytest.param("explain analyze select 1", id="explain"),
        pytest.param("prepare p as select 1", id="prepare"),
        pytest.param("checkpoint", id="checkpoint"),
        pytest.param("select * from TABLE", id="python-variable"),
        pytest.param("select * from found", id="replacement-scan"),
        pytest.param("select getenv('HOME')", id="getenv"),
        pytest.param(
            "select * from postgres_scan('host=127.0.0.1', 'public', 't')", id="postgres-scan"
        ),
        pytest.param("select * from sqlite_scan('/tmp/x.db', 't')", id="sqlite-scan"),
        pytest.param("", id="empty"),
        pytest.param("-- nothing", id="comment"),
        pytest.param("select", id="half"),
        pytest.param("select * from nothing", id="no-table"),
        pytest.param("select " + "1+" * 3000 + "1", id="long"),
        pytest.param(
            "select count(*) from range(1000000000000)  a, range(1000) b", id="cross-join"
        ),
        pytest.param(
            "with recursive t(n) as (select 1 union all select n + 1 from t) select max(n) from t",
            id="endless-recursion",
        ),
        pytest.param("select * from query('copy rows to ''/tmp/x''')", id="query-function"),
    ],
)
def test_attacks_on_sql_are_refused(sql):
    found = object()  # a Python name that no scan may reach
    assert found
    with pytest.raises(InvalidRequestError) as error:
        query(TABLE, sql, QUICK)
    assert error.value.message
    assert len(error.value.message) < 400


def test_a_refused_query_leaves_nothing_behind(tmp_path):
    target = tmp_path / "x.csv"
    with pytest.raises(InvalidRequestError):
        query(TABLE, f"copy rows to '{target}'")
    assert list(tmp_path.iterdir()) == []


def test_a_page_is_filtered_ordered_and_cut():
    found = page(
        TABLE,
        where="Status = 'error' AND id > 20",
        columns=["id"],
        order_by="id desc",
        limit=3,
        offset=1,
    )
    assert found.rows == [{"id": 189}, {"id": 179}, {"id": 169}]
    assert found.more
    assert len(page(TABLE, limit=10_000).rows) == MAX_ROWS


def test_the_last_page_says_that_it_is_the_last():
    assert not page(TABLE, offset=190, limit=20).more
    assert page(TABLE, offset=500).rows == []


@pytest.mark.parametrize(
    ("options", "param"),
    [
        pytest.param({"where": "id >"}, "where", id="syntax"),
        pytest.param(
            {"where": "1=1) union select * from rows where (1=1"}, "where", id="break-out"
        ),
        pytest.param({"where": "1=1; drop table rows"}, "where", id="second-statement"),
        pytest.param(
            {"where": "id in (select 1 from read_csv('/etc/passwd'))"}, "where", id="file"
        ),
        pytest.param({"where": "x" * 5000}, "where", id="long"),
        pytest.param({"columns": ["id", "(select 1)"]}, "columns", id="column"),
        pytest.param({"order_by": "id; drop table rows"}, "columns", id="order"),
        pytest.param({"order_by": "random()"}, "columns", id="order-by-function"),
    ],
)
def test_attacks_on_a_page_are_refused(options, param):
    with pytest.raises(InvalidRequestError) as error:
        page(TABLE, limits=QUICK, **options)
    assert error.value.param == param


def test_a_hostile_column_name_is_only_a_name():
    table = pa.table({'a"; drop table rows; --': [1]})
    assert page(table, order_by='a"; drop table rows; -- desc').rows == [
        {'a"; drop table rows; --': 1}
    ]


def test_no_rows_at_all():
    assert page(pa.table({})).rows == []


def test_a_stuck_query_is_stopped_in_time():
    began = time.monotonic()
    with pytest.raises(InvalidRequestError, match="stopped after"):
        query(
            TABLE,
            "select count(*) from range(10000000000) a, range(1000) b where a.range + b.range < 0",
            QUICK,
        )
    assert time.monotonic() - began < 20  # sanity: without the alarm it runs for hours

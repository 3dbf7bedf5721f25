from __future__ import annotations

import sqlite3

import pytest

from tests.toolruns.gateway.house import call, house, text_of, view_of
from toolruns.gateway.declared import DeclarationError, load

YAML = """
tools:
  - name: orders
    description: Orders of the shop.
    source: {kind: sqlite, path: "${SHOP}/shop.db", sql: "SELECT * FROM orders WHERE id < :below"}
    parameters: {properties: {below: {type: integer}}, required: [below]}
    contract: {columns: [{name: user_id, key: true}], defaults: {maxSeconds: 5}}
  - name: ask_shop
    source: {kind: sqlite, path: "${SHOP}/shop.db"}
  - name: feed
    source:
      kind: growing
      query: {kind: sqlite, path: "${SHOP}/shop.db", sql: "SELECT * FROM orders WHERE id > :cursor ORDER BY id LIMIT :rows"}
      key: id
  - name: log
    source: {kind: tail, path: "${SHOP}/app.log", from_start: true}
  - name: papers
    source: {kind: documents, folder: "${SHOP}"}
  - name: api
    source: {kind: http, api: {url: "https://api.example/items", items: data, paging: {style: page, param: page}}}
  - name: other
    source: {kind: mcp, url: "https://mcp.example/mcp", upstream: {tool: list, items: items, cursor: cursor, next: next}}
  - name: events
    source: {kind: redis_stream, url: "redis://127.0.0.1:6379/0", stream: events}
  - name: lake
    source: {kind: duckdb, path: "${SHOP}/lake.duckdb"}
  - name: warehouse
    source: {kind: postgres, dsn: "host=db"}
"""


@pytest.fixture
def shop(tmp_path):
    with sqlite3.connect(tmp_path / "shop.db") as con:
        con.execute("CREATE TABLE orders (id INTEGER, user_id INTEGER)")
        con.executemany("INSERT INTO orders VALUES (?, ?)", ((n, n % 7) for n in range(500)))
    con.close()
    (tmp_path / "app.log").write_text("one\ntwo\n")
    (tmp_path / "notes.txt").write_text("page one\fpage two")
    return tmp_path


def test_every_kind_has_its_mode_and_arguments(shop):
    tools = {tool.name: tool for tool in load(YAML, {"SHOP": str(shop)})}
    assert {name: tool.contract.mode for name, tool in tools.items()} == {
        "orders": "chunked",
        "ask_shop": "chunked",
        "feed": "unbounded",
        "log": "unbounded",
        "papers": "paginated",
        "api": "paginated",
        "other": "paginated",
        "events": "unbounded",
        "lake": "chunked",
        "warehouse": "chunked",
    }
    assert tools["orders"].contract.defaults.max_seconds == 5
    assert tools["ask_shop"].parameters["required"] == ["sql"]
    assert "resume_from" in tools["feed"].schema()["properties"]
    assert "resume_from" not in tools["orders"].schema()["properties"]


async def test_declared_tools_run(shop, tmp_path):
    tools = load(YAML, {"SHOP": str(shop)})
    async with house(tmp_path / "gateway", *tools) as home, home.client() as client:
        asked = await call(client, "orders", below=40)
        assert text_of(asked).startswith("COMPLETE: 40 rows.")
        own = await call(
            client, "ask_shop", sql="SELECT user_id FROM orders", consume_until="count >= 10"
        )
        assert view_of(own)["rows"] == 32
        feed = await call(client, "feed", max_rows=64)
        more = await call(client, "feed", max_rows=1, resume_from=view_of(feed)["handle"])
        assert '"min":65' in text_of(more)
        assert text_of(await call(client, "log", consume_until="count >= 2")).startswith(
            "PARTIAL (predicate_satisfied) after 2 rows"
        )
        assert text_of(await call(client, "papers", name="notes.txt")).startswith(
            "COMPLETE: 2 rows."
        )
        evil = await call(client, "papers", name="../../etc/passwd")
        assert evil.is_error
        assert "no document" in text_of(evil)
        wrong = await call(client, "ask_shop", sql="DROP TABLE orders")
        assert wrong.is_error
        assert "only reading is allowed" in text_of(wrong)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("tools: [{name: x}]", "source", id="no-source"),
        pytest.param("tools: [{name: x, source: {kind: oracle}}]", "kind", id="kind"),
        pytest.param(
            "tools: [{name: x, source: {kind: tail, path: a, follow: true}}]", "follow", id="field"
        ),
        pytest.param(
            "tools: [{name: x, source: {kind: tail, path: '${NOPE}'}}]", "NOPE", id="environment"
        ),
        pytest.param(
            "tools: [{name: stream_rows, source: {kind: tail, path: a}}]", "reserved", id="reserved"
        ),
        pytest.param(
            "tools: [{name: 'a b', source: {kind: tail, path: a}}]", "no tool name", id="name"
        ),
        pytest.param(
            "tools: [{name: a, source: {kind: tail, path: a}}, {name: a, source: {kind: tail, path: a}}]",
            "taken",
            id="twice",
        ),
        pytest.param("tools: [", "tools", id="yaml"),
        pytest.param("[]", "tools", id="list"),
    ],
)
def test_mistakes_in_a_declaration_are_told(text, message):
    with pytest.raises(DeclarationError) as error:
        load(text, {})
    assert message in str(error.value)

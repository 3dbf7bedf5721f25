"""What the console shows over HTTP, to whom, and what it never shows."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from actors.board import ROW, ROWS, Board, BoardSettings
from actors.console import Console
from actors.console_access import may_see_console
from actors.model_names import ModelNames
from actors.news import WAITING, Reader
from actors.prefixes import Prefixes
from observe.record import Line, Row
from observe.recorder import Recorder
from sessions.memory_store import MemoryStore
from sessions.store import Write, write
from tests.serving.asks import PATHS, TOOLS, ask
from tests.serving.server import Server, serving, settings
from tests.serving.waits import until

API = "/console/api"
SAID = ({"think": "SECRET pondering"}, {"text": "SECRET yes."}, {"call": {"tool": "forecast"}})
SESSION = {"x-session-id": "s1", "user-agent": "claude-cli/2.1"}


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with serving(settings(model={"family": "qwen3_5"})) as running:
        yield running


async def turn(server: Server, api: str = "messages", **fields: Any) -> None:
    server.says(*SAID)
    body = ask(api, tools=TOOLS[api], stream=True, **fields)
    answered = await server.http.post(PATHS[api], json=body, headers=SESSION)
    assert answered.status_code == 200
    await asyncio.wait_for(server.board.settled(), 10)


async def shown(server: Server, path: str) -> Any:
    answered = await server.http.get(f"{API}{path}")
    assert answered.status_code == 200, answered.text
    return answered.json()


async def only_session(server: Server) -> str:
    page = await shown(server, "/sessions")
    assert page["total"] == 1
    return str(page["sessions"][0]["session"])


async def test_a_session_and_its_turns_are_shown(server: Server) -> None:
    for api in ("messages", "chat"):
        await turn(server, api)
    name = await only_session(server)
    view = await shown(server, f"/sessions/{name}")
    row, turns = view["session"], view["turns"]
    assert (row["key"], row["harness"], row["turns"], row["calls"]) == (
        "s1",
        "claude-cli/2.1",
        2,
        2,
    )
    assert row["input"] == sum(one["input"] for one in turns)
    assert [one["api"] for one in turns] == ["messages", "chat"]
    spans = turns[0]["spans"]
    assert [span["kind"] for span in spans] == ["reasoning", "text", "call"]
    assert spans[2]["call"].startswith("toolu_")
    assert 0 <= spans[0]["start"] <= spans[0]["end"] <= spans[2]["end"] <= turns[0]["seconds"]
    assert turns[0]["stop"] == "tool_use"
    assert turns[0]["ttft"] > 0


async def test_a_turn_is_shown_whole(server: Server) -> None:
    await turn(server, system="A")
    await turn(server, system="B", messages=[{"role": "user", "content": "Hm?"}])
    name = await only_session(server)
    line = (await shown(server, f"/sessions/{name}"))["turns"][0]
    view = await shown(server, f"/sessions/{name}/turns/{line['turn']}")
    parts = view["detail"]["parts"]
    assert [part["role"] for part in parts] == ["system", "user", "assistant"]
    assert parts[0].get("start", 0) == 0
    assert parts[-1]["end"] == line["input"]
    assert all(left["end"] == right["start"] for left, right in itertools.pairwise(parts))
    assert [block["kind"] for block in view["reply"]] == ["reasoning", "text", "call"]
    assert view["reply"][0]["text"] == "SECRET pondering"
    for path in (f"/sessions/{name}/turns/none", "/sessions/none"):
        assert (await server.http.get(f"{API}{path}")).status_code == 404


async def test_a_broken_prefix_is_explained(server: Server) -> None:
    body: dict[str, Any] = ask("messages", tools=TOOLS["messages"], system="A", stream=False)
    server.says(*SAID)
    first = await server.http.post(PATHS["messages"], json=body, headers=SESSION)
    body["messages"] += [
        {"role": "assistant", "content": first.json()["content"]},
        {"role": "user", "content": "And?"},
    ]
    await server.http.post(PATHS["messages"], json=body | {"system": "B"}, headers=SESSION)
    await asyncio.wait_for(server.board.settled(), 10)
    name = await only_session(server)
    line = (await shown(server, f"/sessions/{name}"))["turns"][1]
    assert line["broken"] == "changed_system"
    found = (await shown(server, f"/sessions/{name}/turns/{line['turn']}"))["detail"]["broken"]
    assert found["where"] == "system"
    assert found["lost"] > 0
    assert found["before"] != found["after"]


async def test_a_turn_is_seen_while_it_is_in_the_air(server: Server) -> None:
    server.says({"text": "a b c d e f"}, hang_after=2)
    asking = asyncio.ensure_future(
        server.http.post(PATHS["chat"], json=ask("chat", stream=True), headers=SESSION)
    )
    await until(lambda: len(server.conductor) == 1)
    await server.board.beat()
    page = await shown(server, "/sessions")
    assert page["live"] == page["sessions"][0]["live"] == 1
    view = await shown(server, f"/sessions/{page['sessions'][0]['session']}")
    assert view["turns"] == []
    (line,) = view["live"]
    assert "stop" not in line
    found = await shown(server, f"/sessions/{line['session']}/turns/{line['turn']}")
    assert found["line"]["turn"] == line["turn"]
    asking.cancel()
    await until(lambda: len(server.conductor) == 0)


async def test_a_turn_that_fails_says_why(server: Server) -> None:
    server.says({"text": "a b c"}, fail_after={"tokens": 1, "message": "boom"})
    await server.http.post(PATHS["chat"], json=ask("chat"), headers=SESSION)
    await asyncio.wait_for(server.board.settled(), 10)
    name = await only_session(server)
    (line,) = (await shown(server, f"/sessions/{name}"))["turns"]
    assert line["failed"] == "engine"
    view = await shown(server, f"/sessions/{name}/turns/{line['turn']}")
    assert "boom" in view["detail"]["message"]


async def test_a_turn_that_found_no_replica_says_why(server: Server) -> None:
    server.kill(server.replica)
    refused = await server.http.post(PATHS["chat"], json=ask("chat"), headers=SESSION)
    assert refused.status_code == 503
    await asyncio.wait_for(server.board.settled(), 10)
    name = await only_session(server)
    (line,) = (await shown(server, f"/sessions/{name}"))["turns"]
    assert line["failed"] == "unavailable"
    view = await shown(server, f"/sessions/{name}/turns/{line['turn']}")
    assert "no replica" in view["detail"]["message"]


async def test_nothing_that_was_written_leaves_a_redacted_console() -> None:
    chosen = settings(model={"family": "qwen3_5"}, console={"redact": True})
    async with serving(chosen) as server:
        await turn(server, system="SECRET A")
        await turn(server, system="SECRET B")
        name = await only_session(server)
        told = json.dumps(await shown(server, f"/sessions/{name}"))
        for line in json.loads(told)["turns"]:
            view = await shown(server, f"/sessions/{name}/turns/{line['turn']}")
            assert view["redacted"] is True
            assert view["reply"] is None
            assert view["detail"]["parts"]
            told += json.dumps(view)
        assert "SECRET" not in told
        assert (await server.http.get(f"{API}/runs/x/rows")).status_code == 404
        kept = json.dumps([str(e.values) for k, e in _entries(server) if k[0].startswith("seen")])
        assert "SECRET" not in kept


def _entries(server: Server) -> list[Any]:
    assert isinstance(server.store, MemoryStore)
    return list(server.store._entries.items())


async def test_a_console_that_is_off_is_not_there() -> None:
    async with serving(settings(console={"enabled": False})) as server:
        assert (await server.http.get("/console/")).status_code == 404
        assert (await server.http.get(f"{API}/sessions")).status_code == 404
        answered = await server.http.post(PATHS["chat"], json=ask("chat"))
        assert answered.status_code == 200
        assert not [key for key, _ in _entries(server) if key[0].startswith("seen")]


HERE = {"host": "127.0.0.1:8000"}
AWAY = "203.0.113.7"


@pytest.mark.parametrize(
    ("headers", "ends", "seen"),
    [
        pytest.param(HERE, {"peer": "127.0.0.1"}, True, id="this machine"),
        pytest.param({"host": "localhost"}, {"peer": "::1"}, True, id="by name"),
        pytest.param({"host": "[::1]:8000"}, {}, True, id="by address"),
        pytest.param(HERE, {"peer": "10.0.0.2", "local": "10.0.0.2"}, True, id="proxy on it"),
        pytest.param(HERE, {"peer": AWAY, "local": "10.0.0.2"}, False, id="another machine"),
        pytest.param(HERE | {"x-forwarded-for": AWAY}, {}, False, id="forwarded"),
        pytest.param(HERE | {"x-forwarded-for": "127.0.0.1, ::1"}, {}, True, id="forwarded here"),
        pytest.param({"host": "evil.example"}, {"peer": "127.0.0.1"}, False, id="rebound name"),
        pytest.param({"host": "[bad"}, {}, False, id="no name"),
        pytest.param({}, {}, False, id="no host"),
        pytest.param(HERE | {"origin": "http://evil.example"}, {}, False, id="another origin"),
        pytest.param(HERE | {"origin": "http://127.0.0.1:8000"}, {}, True, id="own origin"),
        pytest.param(HERE | {"origin": "http://["}, {}, False, id="no origin"),
        pytest.param(HERE | {"sec-fetch-site": "cross-site"}, {}, False, id="from another site"),
        pytest.param({"host": "gpu.example"}, {"peer": AWAY, "key": "k1"}, True, id="by key"),
        pytest.param(
            HERE | {"sec-fetch-site": "cross-site"}, {"key": "k1"}, False, id="key, another site"
        ),
        pytest.param({"host": "gpu.example"}, {"peer": AWAY, "anyone": True}, True, id="anyone"),
        pytest.param(
            {"host": "gpu.example", "origin": "null"}, {"anyone": True}, False, id="nobody's page"
        ),
    ],
)
def test_who_may_see_it(headers: dict[str, str], ends: dict[str, Any], seen: bool) -> None:
    assert may_see_console(headers, **ends) is seen


@pytest.mark.parametrize(
    "path", ["/about", "/sessions", "/sessions/x", "/fleet", "/runs", "/runs/x/rows", "/events"]
)
async def test_every_answer_is_guarded(server: Server, path: str) -> None:
    refused = await server.http.get(f"{API}{path}", headers={"host": "evil.example"})
    assert refused.status_code == 401
    assert "ssh -L" in refused.json()["error"]["message"]


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        pytest.param("/sessions?offset=abc", "offset", id="no number"),
        pytest.param("/events?topic=weather", "topic", id="none of these"),
    ],
)
async def test_a_bad_query_is_refused_as_all_else_is(
    server: Server, asked: str, field: str
) -> None:
    refused = await server.http.get(f"{API}{asked}")
    assert refused.status_code == 400
    error = refused.json()["error"]
    assert (error["type"], error["param"]) == ("invalid_request_error", field)
    assert error["message"].startswith(f"{field}: Input should be")


async def test_the_page_has_its_files_and_nothing_from_elsewhere(server: Server) -> None:
    moved = await server.http.get("/console")
    assert moved.headers["location"] == "console/"
    page = await server.http.get("/console/")
    assert page.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in page.headers["content-security-policy"]
    again = {"if-none-match": page.headers["etag"]}
    assert (await server.http.get("/console/", headers=again)).status_code == 304
    assert (await server.http.get("/console/nothing.js")).status_code == 404


async def test_the_fleet_is_shown(server: Server) -> None:
    await turn(server)
    (model,) = await shown(server, "/fleet")
    (replica,) = model["replicas"]
    assert (model["model"], replica["max_turns"]) == ("lab-model", 64)
    assert {"running", "waiting", "kv_used", "prompt_tokens"} <= replica.keys()


async def read_news(server: Server, topic: str, wanted: str) -> dict[str, Any]:
    """The data of the first event `wanted`, of those that say something."""
    async with server.http.stream("GET", f"{API}/events?topic={topic}") as answer:
        kind = ""
        async for line in answer.aiter_lines():
            if line.startswith("event: "):
                kind = line[7:]
            elif line.startswith("data: ") and kind == wanted:
                data = json.loads(line[6:])
                if not isinstance(data, dict) or data["sessions"]:
                    return {"data": data}
    raise AssertionError(wanted)


async def test_news_come_by_themselves(server: Server) -> None:
    news = asyncio.ensure_future(read_news(server, "turns", "changed"))
    fleet = asyncio.ensure_future(read_news(server, "fleet", "fleet"))
    await asyncio.sleep(0)
    async with asyncio.timeout(20):
        while not news.done():  # the turn must end after the first look
            await turn(server)
            await asyncio.wait([news], timeout=0.5)
        name = await only_session(server)
        assert news.result()["data"]["sessions"] == [name]
        assert (await fleet)["data"][0]["model"] == "lab-model"


async def test_a_reader_that_does_not_read_is_told_that_it_missed_something() -> None:
    reader = Reader("turns")
    for n in range(WAITING + 1):
        reader.tell(b"event: %d\n\n" % n)
    pieces = [piece async for piece in reader.pieces(life=0.05, every=0.01)]
    assert b'"missed":true' in pieces[1]
    assert pieces[-1] == b": still here\n\n"


def board_of(store: MemoryStore, name: str) -> Board:
    prefixes = Prefixes(lambda *_: None, ModelNames([]).model)
    return Board(
        store, name, recorder=Recorder(), prefixes=prefixes, settings=BoardSettings(sessions=50)
    )


async def test_what_several_ingresses_saw_is_one_list(server: Server) -> None:
    """This server shows what the boards of two others wrote to the store that they share."""
    assert isinstance(server.store, MemoryStore)
    boards = [board_of(server.store, name) for name in ("a", "b")]
    running = [asyncio.ensure_future(board.run_forever()) for board in boards]
    for n in range(60):
        board = boards[n % 2]
        line = Line(f"t{n}", f"s{n % 20}", float(n), key=f"k{n % 20}", harness="codex", input=1)
        board._over(line, "", ())
    for board in boards:
        await asyncio.wait_for(board.settled(), 10)
    page = await shown(server, "/sessions?q=codex&limit=5")
    assert (page["total"], len(page["sessions"])) == (20, 5)
    assert page["sessions"][0]["turns"] == 3
    later = await shown(server, "/sessions?q=codex&limit=100&offset=15")
    assert len(later["sessions"]) == 5
    assert (await shown(server, "/sessions?q=nothing"))["total"] == 0
    lines = (await shown(server, "/sessions/s3"))["turns"]
    assert [line["turn"] for line in lines] == ["t3", "t23", "t43"]
    for task in running:
        task.cancel()


async def test_a_board_that_is_behind_loses_turns_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("actors.board.WAITING", 5)
    board = board_of(MemoryStore(), "a")
    for n in range(8):
        board._over(Line(f"t{n}", "s", float(n)), "", ())
    assert board.missed == 3
    running = asyncio.ensure_future(board.run_forever())
    await asyncio.wait_for(board.settled(), 10)
    running.cancel()
    assert len(await board._store.items(ROWS, "", "all")) == 1


class Unsteady(MemoryStore):
    """Takes a write only when it is asked for the third time, each that comes after another."""

    asked = 0

    def _taken(self) -> bool:
        self.asked += 1
        return self.asked % 3 == 0

    async def put(self, *writes: Write) -> bool:
        return self._taken() and await super().put(*writes)

    async def append(self, *of: Any, **how: Any) -> bool:
        written = await super().append(*of, **how)  # too late, but there
        return self._taken() and written


async def test_what_the_store_does_not_take_is_written_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("actors.board.AGAIN", 0.0)
    store = Unsteady()
    board = board_of(store, "a")
    monkeypatch.setattr(board, "_beat_forever", asyncio.Event().wait)
    for n in range(4):
        board._over(Line(f"t{n}", f"s{n % 2}", float(n)), "", ())
    running = asyncio.ensure_future(board.run_forever())
    await asyncio.wait_for(board.settled(), 10)
    running.cancel()
    console = Console(store, board.settings)
    assert (await console.sessions()).total == 2
    view = await console.session("s1")
    assert [line.turn for line in view.turns] == ["t1", "t3"]
    assert view.session.turns == 2
    assert board.missed == 0


async def test_many_sessions_are_read_at_once(server: Server) -> None:
    names = [f"a/s{n}" for n in range(1200)]
    rows: list[Write] = [
        write(ROW, "", name, Row(name[2:], name, "", n, n, turns=1), ttl=60)
        for n, name in enumerate(names)
    ]
    await server.store.put(*rows)
    await server.store.append(ROWS, "", "all", names, ttl=60, keep=5000)
    page = await shown(server, "/sessions?offset=1150")
    assert (page["total"], len(page["sessions"])) == (1200, 50)
    assert page["sessions"][-1]["session"] == "s0"

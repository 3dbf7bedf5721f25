from __future__ import annotations

import asyncio
import json
from itertools import pairwise

import pytest
from mcp.shared.exceptions import MCPError
from mcp.types import Implementation

from tests.toolruns.gateway.house import Scripted, call, eventually, house, text_of, tool, view_of
from toolruns.budget import Purse
from toolruns.gateway.calls import Settings
from toolruns.gateway.listing import FIXED, LONGEST, described
from toolruns.gateway.profiles import call_id_of, harness_of
from toolruns.tool import streaming_tool

ERAS = pytest.mark.parametrize("era", ["modern", "legacy"])


@ERAS
async def test_tools_are_listed_with_their_contract(tmp_path, era):
    async with (
        house(tmp_path, tool(name="b"), tool("unbounded", name="a")) as home,
        home.client(era) as client,
    ):
        tools = (await client.list_tools()).tools
        assert [t.name for t in tools] == ["a", "b", *FIXED]
        first = tools[0]
        assert first.meta["dev.treadle/streaming"]["mode"] == "unbounded"
        assert first.meta["anthropic/alwaysLoad"] is True
        assert first.annotations.read_only_hint
        assert first.description.startswith("STREAMING (unbounded): ")
        assert {
            "do",
            "consume_until",
            "max_rows",
            "max_seconds",
            "checkpoint",
            "supersedes",
        } <= set(first.input_schema["properties"])


def test_descriptions_are_short_and_say_how_long_rows_live():
    long = tool().__class__("x", "y" * 9000, tool().contract, tool().open)
    assert len(described(long)) == LONGEST
    assert "15 minutes" in described(long)


@ERAS
async def test_a_predicate_stops_the_stream_and_the_model_reads_partial(tmp_path, era):
    async with house(tmp_path) as home, home.client(era) as client:
        result = await call(
            client, "orders", do="endless", consume_until="count >= 30 AND distinct_user_ids >= 10"
        )
        text = text_of(result)
        assert (
            text.splitlines()[0] == "PARTIAL (predicate_satisfied) after 32 rows; source has more."
        )
        assert len(text.encode()) <= 2048
        body = json.loads(text.split("\n", 2)[2])
        assert body["predicate"] == {
            "text": "count >= 30 AND distinct_user_ids >= 10",
            "satisfied": True,
            "satisfied_at_row": 30,
            "approximate": False,
        }
        assert Scripted.all[0].closed
        assert Scripted.all[0].reads == 1
        assert view_of(result)["reason"] == "predicate_satisfied"


@ERAS
async def test_yield_continue_drill_down_and_close(tmp_path, era):
    orders = tool(yield_after_seconds=0.1)
    async with house(tmp_path, orders) as home, home.client(era) as client:
        result = await call(client, "orders", do="silent")
        assert text_of(result).startswith("PARTIAL (yielded) after 32 rows; the stream is paused")
        handle = view_of(result)["handle"]
        rows = text_of(
            await call(
                client,
                "stream_rows",
                handle=handle,
                where="status = 'error'",
                columns=["amount"],
                order_by="amount desc",
                limit=2,
            )
        )
        assert rows == '2 rows (cut: there are more)\n{"amount":29.0}\n{"amount":19.0}'
        table = text_of(
            await call(client, "stream_query", handle=handle, sql="select count(*) n from rows")
        )
        assert table == '1 row\n{"n":32}'
        again = await call(
            client, "stream_continue", handle=handle, consume_until="count >= 20", max_seconds=5
        )
        assert text_of(again).startswith("PARTIAL (predicate_satisfied)")
        assert json.loads(text_of(again).split("\n", 2)[2])["predicate"]["satisfied_at_row"] == 20
        assert text_of(await call(client, "stream_close", handle=handle)).startswith("closed")
        gone = await call(client, "stream_rows", handle=handle)
        assert gone.is_error
        assert "unknown or expired handle" in text_of(gone)


async def test_the_record_tells_the_whole_life(tmp_path):
    async with house(tmp_path) as home, home.client() as client:
        result = await call(client, "orders", do="end")
        handle = view_of(result)["handle"]
        await call(client, "stream_rows", handle=handle)
        entries = home.store.events(handle)
        types = [entry.type for entry in entries]
        assert types[0] == "trajectory.opened"
        assert types[-3:] == ["trajectory.terminated", "result.returned", "drilldown.called"]
        assert [entry.seq for entry in entries] == list(range(len(entries)))
        chunks = [entry.data for entry in entries if entry.type == "chunk.received"]
        assert [(c["segment"], c["batch"]) for c in chunks] == [(0, 0), (0, 1), (0, 2)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(
            {"do": "end", "consume_until": "count >="}, "cut short at column 9", id="predicate"
        ),
        pytest.param({"do": "end", "consume_until": "x" * 2000}, "longer than 1024", id="long"),
        pytest.param({"do": "end", "max_rows": 0}, ">= 1", id="rows"),
        pytest.param({"do": "end", "max_rows": "many"}, "Expected `int", id="rows-text"),
        pytest.param({"do": "end", "max_seconds": -1}, "> 0", id="seconds"),
        pytest.param({"do": "end", "checkpoint": "yes"}, "Expected `bool", id="checkpoint"),
        pytest.param({"do": "dance"}, "do: 'dance' is not one of", id="own-argument"),
        pytest.param({}, "argument 'do' is required", id="missing"),
        pytest.param({"do": "end", "shop": 1}, "unknown argument 'shop'", id="unknown"),
        pytest.param(
            {"do": "end", "resume_from": "trj_x"}, "unknown or expired handle", id="resume"
        ),
        pytest.param(
            {"do": "end", "supersedes": "../../etc"}, "unknown or expired handle", id="supersedes"
        ),
    ],
)
@ERAS
async def test_mistakes_are_told_before_anything_is_opened(tmp_path, era, arguments, message):
    async with house(tmp_path) as home, home.client(era) as client:
        result = await call(client, "orders", **arguments)
        assert result.is_error
        assert message in text_of(result)
        assert Scripted.all == []
        assert home.handles() == []


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        pytest.param("stream_rows", {"handle": "trj_" + "A" * 22}, "unknown or expired", id="rows"),
        pytest.param(
            "stream_query", {"handle": "../x", "sql": "select 1"}, "unknown or expired", id="query"
        ),
        pytest.param(
            "stream_continue", {"handle": "trj_" + "A" * 22}, "unknown or expired", id="continue"
        ),
        pytest.param("stream_close", {"handle": ""}, "unknown or expired", id="close"),
        pytest.param("stream_rows", {}, "missing required field `handle`", id="no-handle"),
        pytest.param("stream_rows", {"handle": 7}, "Expected `str`", id="number"),
        pytest.param("stream_rows", {"handle": "x", "limit": 51}, "<= 50", id="limit"),
        pytest.param(
            "stream_close", {"handle": "x", "force": True}, "unknown field `force`", id="field"
        ),
    ],
)
async def test_fixed_tools_refuse_what_makes_no_sense(tmp_path, name, arguments, message):
    async with house(tmp_path) as home, home.client() as client:
        result = await call(client, name, **arguments)
        assert result.is_error
        assert message in text_of(result)


@ERAS
async def test_an_unknown_tool_is_a_protocol_error(tmp_path, era):
    async with house(tmp_path) as home, home.client(era) as client:
        with pytest.raises(MCPError, match="unknown tool"):
            await call(client, "nothing")


async def test_continue_needs_a_yielded_stream(tmp_path):
    async with house(tmp_path) as home, home.client() as client:
        done = view_of(await call(client, "orders", do="end"))["handle"]
        assert "has ended (exhausted)" in text_of(
            await call(client, "stream_continue", handle=done)
        )
        running = asyncio.create_task(call(client, "orders", do="stuck", max_seconds=5))
        await eventually(lambda: len(home.handles()) == 2 and home.calls._live)
        busy = await call(client, "stream_continue", handle=home.handles()[-1])
        assert "still running in another call" in text_of(busy)
        await call(client, "stream_close", handle=home.handles()[-1])
        assert text_of(await running).startswith("PARTIAL (model_stopped)")


async def test_a_resumable_tool_goes_on_at_the_cursor_of_an_earlier_call(tmp_path):
    async with house(tmp_path) as home, home.client() as client:
        first = view_of(await call(client, "orders", do="endless", max_rows=64))["handle"]
        second = await call(client, "orders", do="endless", max_rows=10, resume_from=first)
        assert Scripted.all[1].begin == 64
        assert not second.is_error


async def test_progress_grows_and_tells_what_was_seen(tmp_path):
    told = []

    async def heard(progress, _total, message):
        told.append((progress, message))

    async with house(tmp_path) as home, home.client() as client:
        await client.call_tool(
            "orders", {"do": "endless", "max_rows": 1000}, progress_callback=heard
        )
    assert told
    assert all(later[0] > earlier[0] for earlier, later in pairwise(told))
    assert all(len(message) <= 200 for _, message in told)
    assert "17 user_id" in told[-1][1]


async def test_too_many_open_streams_are_refused(tmp_path):
    async with (
        house(tmp_path, tool(yield_after_seconds=0.05), settings=Settings(most_runs=2)) as home,
        home.client() as client,
    ):
        for _ in range(2):
            await call(client, "orders", do="stuck")
        refused = await call(client, "orders", do="stuck")
        assert refused.is_error
        assert "2 streams of yours are open" in text_of(refused)


async def test_draining_ends_streams_and_refuses_new_ones(tmp_path):
    async with house(tmp_path) as home, home.client() as client:
        running = asyncio.create_task(call(client, "orders", do="stuck"))
        await eventually(lambda: Scripted.all and Scripted.all[0].reads)
        await home.calls.drain()
        assert text_of(await running).startswith("PARTIAL (server_draining)")
        assert "going away" in text_of(await call(client, "orders", do="end"))
        assert Scripted.all[0].closed


async def test_the_sessions_purse_is_asked_for_by_call_id(tmp_path):
    asked = []

    async def purse_of(call_id, principal):
        asked.append((call_id, principal))
        return Purse(deadline=40.0, further_calls=3, context=4000)

    async with house(tmp_path, purse_of=purse_of) as home, home.client() as client:
        result = await client.call_tool(
            "orders", {"do": "end", "max_seconds": 60}, meta={"claudecode/toolUseId": "toolu_1"}
        )
        assert asked == [("toolu_1", "local")]
        assert view_of(result)["budget"]["from"] == "session"
        assert len(text_of(result).encode()) <= 384
        await client.call_tool("orders", {"do": "end"})
        assert len(asked) == 1


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ('{"decision":"stop"}', "model_stopped"),
        ('{"decision":"refine","consume_until":"count >= 10"}', "predicate_satisfied"),
        ('{"decision":"continue"}', "budget_rows"),
        ("nonsense", "budget_rows"),
        (RuntimeError("away"), "budget_rows"),
    ],
    ids=["stop", "refine", "continue", "nonsense", "error"],
)
async def test_decision_rounds_rule_the_stream(tmp_path, answer, reason):
    questions = []

    async def decide(question):
        questions.append(question)
        if isinstance(answer, Exception):
            raise answer
        return answer

    settings = Settings(decisions="automatic")
    async with house(tmp_path, settings=settings, decide=decide) as home, home.client() as client:
        result = await client.call_tool(
            "orders", {"do": "endless", "max_rows": 640}, meta={"callId": "call_7"}
        )
        assert view_of(result)["reason"] == reason
        assert len(questions) == 1
        assert (questions[0].call_id, questions[0].principal) == ("call_7", "local")
        assert "chunk 2 of a chunked result" in questions[0].text
        if reason == "predicate_satisfied":
            assert view_of(result)["predicate"]["satisfied_at_row"] == 10


async def test_no_call_id_no_decision_round(tmp_path):
    async def decide(_question):
        raise AssertionError

    async with (
        house(tmp_path, settings=Settings(decisions="automatic"), decide=decide) as home,
        home.client() as client,
    ):
        result = await call(client, "orders", do="endless", max_rows=640)
        assert view_of(result)["reason"] == "budget_rows"
        types = {entry.type for entry in home.store.events(view_of(result)["handle"])}
        assert "decision.requested" not in types


@ERAS
async def test_trajectories_are_resources_of_their_owner(tmp_path, era):
    async with house(tmp_path) as home, home.client(era) as client:
        handle = view_of(await call(client, "orders", do="end"))["handle"]
        templates = (await client.list_resource_templates()).resource_templates
        assert templates[0].uri_template == "trj://{handle}/synopsis{?offset,limit}"
        rows = json.loads(
            (await client.read_resource(f"trj://{handle}/rows?offset=94&limit=9")).contents[0].text
        )
        assert [row["amount"] for row in rows["rows"]] == [94.0, 95.0]
        events = json.loads(
            (await client.read_resource(f"trj://{handle}/events?limit=1")).contents[0].text
        )
        assert events["events"][0]["type"] == "trajectory.opened"
        synopsis = json.loads(
            (await client.read_resource(f"trj://{handle}/synopsis")).contents[0].text
        )
        assert synopsis["reason"] == "exhausted"
        for evil in [
            f"trj://{handle}/secret",
            "trj://../../etc/rows",
            "file:///etc/passwd",
            f"trj://{handle[:-1]}x/rows",
        ]:
            with pytest.raises(MCPError, match="unknown or expired"):
                await client.read_resource(evil)


async def test_python_generators_are_tools(tmp_path):
    @streaming_tool(mode="chunked")
    async def squares(upto: int):
        """Squares."""
        for n in range(upto):
            yield {"n": n * n}

    async with house(tmp_path, squares) as home, home.client() as client:
        result = await call(client, "squares", upto=10**9, consume_until="max(n) > 99")
        assert view_of(result)["predicate"]["satisfied_at_row"] == 11
        assert "upto: 'x' is not of type" in text_of(await call(client, "squares", upto="x"))


def test_our_arguments_give_way_to_the_tools_own():
    own = tool().__class__(
        "x", "", tool().contract, tool().open, {"properties": {"max_rows": {"type": "string"}}}
    )
    assert "max_rows_stream" in own.schema()["properties"]
    assert own.split({"max_rows": "a", "max_rows_stream": 3}) == (
        {"max_rows": "a"},
        {"max_rows": 3},
    )


@pytest.mark.parametrize(
    ("client", "timeout"),
    [
        ("claude-code/2.1.332", 56.0),
        ("Codex/0.171.0", 56.0),
        ("", 56.0),
        ("patient-client/1.9", 300.0),
        ("patient-client/2.0", 600.0),
    ],
)
def test_harness_profiles(client, timeout):
    assert harness_of(client, {"^patient.*/2": 600.0, "^patient": 300.0}).timeout == timeout


@ERAS
async def test_a_client_is_known_by_its_name_and_version(tmp_path, era):
    """This version of it waits a second for a tool: it is answered before, and no other bound ends it."""
    asks = Settings(timeouts={"^probe/2": 1.0, "^probe": 600.0})
    patient = tool(max_seconds=100.0, yield_after_seconds=100.0, max_rows=10**9)
    probe = Implementation(name="probe", version="2.1")
    async with (
        house(tmp_path, patient, settings=asks) as home,
        home.client(era, client_info=probe) as client,
    ):
        assert view_of(await call(client, "orders", do="endless"))["status"] == "yielded"


@pytest.mark.parametrize(
    ("meta", "call_id"),
    [
        ({"claudecode/toolUseId": "toolu_1"}, "toolu_1"),
        ({"callId": "call_1", "threadId": "t"}, "call_1"),
        ({}, ""),
        ({"callId": 7}, ""),
    ],
)
def test_call_ids_come_from_the_client(meta, call_id):
    assert call_id_of(meta) == call_id

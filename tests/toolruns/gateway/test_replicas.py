"""Two gateways that share rows and book: a handle is good at either, wherever its run began."""

from __future__ import annotations

from contextlib import asynccontextmanager

import pytest

from tests.toolruns.gateway.house import House, Scripted, call, text_of, tool, view_of
from toolruns.rows.books import RedisBook
from toolruns.rows.keeper import Keeper


@asynccontextmanager
async def two(path, redis_url):
    """Gateways of one deployment, each the other's `elsewhere`."""
    redis = pytest.importorskip("redis.asyncio")
    client = redis.from_url(redis_url)
    await client.flushdb()
    houses: dict[str, House] = {}

    async def elsewhere(record, name, arguments, caller):
        return await houses[record.holder].calls.held(name, arguments, caller)

    for name in ("one", "two"):
        made = House(path, [tool()], elsewhere=elsewhere)
        keeper = Keeper(RedisBook(client), made.store, holder=name)
        made.calls._keeper = made.calls.drilldown._keeper = keeper
        houses[name] = made
    everyone = list(houses.values())
    try:
        yield houses
    finally:
        for made in everyone:
            await made.calls.drain()
        await client.aclose()


async def test_rows_are_found_from_any_replica(tmp_path, redis_url):
    async with (
        two(tmp_path, redis_url) as houses,
        houses["one"].client() as here,
        houses["two"].client() as there,
    ):
        stopped = await call(here, "orders", do="endless", max_rows=32)
        handle = view_of(stopped)["handle"]
        counted = await call(
            there, "stream_query", handle=handle, sql="SELECT count(*) n FROM rows"
        )
        assert '"n":32' in text_of(counted)
        assert not (await call(there, "stream_close", handle=handle)).is_error
        assert (await call(here, "stream_rows", handle=handle)).is_error


async def test_a_yielded_stream_goes_on_and_is_closed_from_any_replica(tmp_path, redis_url):
    async with (
        two(tmp_path, redis_url) as houses,
        houses["one"].client() as here,
        houses["two"].client("legacy") as there,
    ):
        held = view_of(await call(here, "orders", do="endless", checkpoint=True))
        assert held["status"] == "yielded"
        on = await call(there, "stream_continue", handle=held["handle"], checkpoint=True)
        assert view_of(on)["status"] == "yielded"
        assert view_of(on)["rows"] > held["rows"]
        assert len(Scripted.all) == 1
        assert not (await call(there, "stream_close", handle=held["handle"])).is_error
        assert Scripted.all[0].closed


async def test_a_better_call_ends_the_earlier_one_at_any_replica(tmp_path, redis_url):
    async with (
        two(tmp_path, redis_url) as houses,
        houses["one"].client() as here,
        houses["two"].client() as there,
    ):
        held = view_of(await call(here, "orders", do="endless", checkpoint=True))
        await call(there, "orders", do="endless", max_rows=32, supersedes=held["handle"])
        assert houses["one"].reason(held["handle"]) == "model_refined"


async def test_a_stream_whose_replica_is_gone_says_so_and_leaves_its_rows(tmp_path, redis_url):
    async with (
        two(tmp_path, redis_url) as houses,
        houses["one"].client() as here,
        houses["two"].client() as there,
    ):
        held = view_of(await call(here, "orders", do="endless", checkpoint=True))
        del houses["one"]
        refused = await call(there, "stream_continue", handle=held["handle"])
        assert refused.is_error
        assert "held by another server, which no longer has it" in text_of(refused)
        assert not (await call(there, "stream_rows", handle=held["handle"])).is_error

"""Every ending, in every mode and both eras, brought about through the protocol itself."""

from __future__ import annotations

import asyncio

import pytest

from tests.toolruns.gateway.house import (
    ERAS,
    Scripted,
    call,
    eventually,
    house,
    text_of,
    tool,
    view_of,
)
from toolruns.budget import Purse
from toolruns.contract import MODES
from toolruns.endings import Ending, reachable
from toolruns.replay import coverage
from toolruns.rows.store import Limits

IMPOSSIBLE = {
    ("modern", Ending.CLIENT_DISCONNECTED): "closing the response is how a modern client cancels",
    ("legacy", Ending.CANCELLED): "without sessions a legacy cancel is seen only as a disconnect",
}
CELLS = [
    (era, mode, ending)
    for era in ERAS
    for mode, ending in reachable()
    if (era, ending) not in IMPOSSIBLE
]
CALLS: dict[Ending, tuple[dict, dict]] = {
    Ending.EXHAUSTED: ({}, {"do": "end"}),
    Ending.PREDICATE_SATISFIED: ({}, {"do": "endless", "consume_until": "count >= 40"}),
    Ending.BUDGET_ROWS: ({}, {"do": "endless", "max_rows": 20}),
    Ending.BUDGET_BYTES: ({"max_bytes": 1000}, {"do": "endless"}),
    Ending.BUDGET_WALL_CLOCK: ({}, {"do": "stuck", "max_seconds": 0.1}),
    Ending.IDLE_TIMEOUT: ({"idle_seconds": 0.1}, {"do": "silent"}),
    Ending.UPSTREAM_ERROR: ({}, {"do": "fail"}),
    Ending.UPSTREAM_TRUNCATED: ({}, {"do": "cut"}),
    Ending.PREDICATE_INVALID: ({}, {"do": "endless", "consume_until": "sum(price) > 1"}),
    Ending.STORE_LIMIT: ({}, {"do": "endless", "pause": 0.001}),
}
"""Limits of the contract and arguments of the one call that ends so."""


async def one_call(path, era, mode, ending):
    limits, arguments = CALLS[ending]
    room = Limits(rows=31) if ending is Ending.STORE_LIMIT else None
    async with house(path, tool(mode, **limits), limits=room) as home, home.client(era) as client:
        result = await call(client, "orders", **arguments)
        assert view_of(result)["reason"] == str(ending)
        assert text_of(result).startswith("COMPLETE" if ending is Ending.EXHAUSTED else "PARTIAL")
        return home.reason(home.handles()[-1])


async def left_by_the_client(path, era, mode, _ending):
    async with house(path, tool(mode)) as home, home.client(era) as client:
        calling = asyncio.create_task(client.call_tool("orders", {"do": "stuck"}))
        await opened()
        calling.cancel()
        await asyncio.gather(calling, return_exceptions=True)
        await closed()
        return await until_reason(home)


async def yielded(client):
    result = await call(client, "orders", do="stuck")
    assert text_of(result).startswith("PARTIAL (yielded)")
    return view_of(result)["handle"]


async def ended_while_yielded(path, era, mode, ending):
    limits = {"yield_after_seconds": 0.05}
    if ending is Ending.BUDGET_TOKENS:
        limits["max_tokens"] = 600
    async with house(path, tool(mode, **limits)) as home, home.client(era) as client:
        handle = await yielded(client)
        if ending is Ending.MODEL_REFINED:
            await call(client, "orders", do="end", supersedes=handle, max_seconds=20)
        elif ending is Ending.HANDLE_CLOSED:
            home.keeper.close = keep_rows
            home.wall_shift = 10_000.0
            await home.calls.sweep()
        elif ending is Ending.SERVER_DRAINING:
            await home.calls.drain()
        elif ending is Ending.BUDGET_TOKENS:
            result = await call(client, "stream_continue", handle=handle)
            return view_of(result)["reason"]
        else:
            home.keeper.close = keep_rows
            assert "closed" in text_of(await call(client, "stream_close", handle=handle))
        await closed()
        return await until_reason(home)


async def keep_rows(record):
    """In place of dropping rows, so that the record can still be read."""


async def by_deadline(path, era, mode, _ending):
    async def purse_of(_call_id, _principal):
        return Purse(deadline=0.1)

    async with house(path, tool(mode), purse_of=purse_of) as home, home.client(era) as client:
        async with asyncio.timeout(30):
            result = await client.call_tool("orders", {"do": "stuck"}, meta={"callId": "call_1"})
        return view_of(result)["reason"]


async def opened():
    await eventually(lambda: any(source.reads for source in Scripted.all))


async def closed():
    await eventually(lambda: all(source.closed for source in Scripted.all if source.opened))


async def until_reason(home):
    """The ending of the first trajectory, once its record has one."""
    await eventually(lambda: home.handles() and home.reason(home.handles()[0]))
    return home.reason(home.handles()[0])


WAYS = {
    **dict.fromkeys(CALLS, one_call),
    Ending.CANCELLED: left_by_the_client,
    Ending.CLIENT_DISCONNECTED: left_by_the_client,
    Ending.DEADLINE_INHERITED: by_deadline,
    Ending.BUDGET_TOKENS: ended_while_yielded,
    Ending.MODEL_STOPPED: ended_while_yielded,
    Ending.MODEL_REFINED: ended_while_yielded,
    Ending.HANDLE_CLOSED: ended_while_yielded,
    Ending.SERVER_DRAINING: ended_while_yielded,
}


@pytest.mark.parametrize(("era", "mode", "ending"), CELLS, ids=str)
async def test_every_ending_in_every_mode_and_era(tmp_path, era, mode, ending):
    assert await WAYS[ending](tmp_path, era, mode, ending) == str(ending)
    await closed()
    assert all(source.closed for source in Scripted.all if source.opened)


def test_coverage_over_eras_is_full():
    """Each cell is asserted by a test of its own above; this says that none was left out."""
    played = {(f"{era}/{mode}", str(ending)) for era, mode, ending in CELLS if ending in WAYS}
    wanted = [(f"{era}/{mode}", str(e)) for era in ERAS for mode, e in reachable()]
    left_out = {(f"{era}/{m}", str(e)) for era, e in IMPOSSIBLE for m in MODES}
    assert set(wanted) - played == left_out
    report = coverage(played, [cell for cell in wanted if cell not in left_out])
    assert report.splitlines()[-1] == "128 of 128 reachable cells"

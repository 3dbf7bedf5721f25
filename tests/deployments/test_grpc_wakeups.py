"""Wake-ups of gRPC's asyncio loop: a full pair of sockets holds up no answer. Counted in passes."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest

from deployments.grpc_wakeups import never_wait, pair

PASS = 0.005
"""Seconds that each pass of a busy loop takes: answers come between two of them."""

FEW, MANY = 60, 150
"""Passes until an answer; a writer that waits goes on after some 200."""


class Echo(grpc.GenericRpcHandler):  # type: ignore[misc]  # untyped
    def service(self, call: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
        return grpc.unary_unary_rpc_method_handler(lambda request, _: request)


@pytest.fixture
def port() -> Iterator[int]:
    """A server with threads of its own: it needs no loop."""
    server = grpc.server(ThreadPoolExecutor(2), handlers=(Echo(),))
    found = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield found
    server.stop(None).wait(10)


async def passes_until_answers(port: int, *, mended: bool) -> int:
    """Passes of a busy loop from two calls to their answers, begun when the pair is full."""
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        call = channel.unary_unary("/echo/echo")
        assert await call(b"made") == b"made"  # now there is a pair
        never_wait()
        _, written = pair()
        fill(written.fileno())
        written.setblocking(not mended)
        asked = asyncio.gather(*(asyncio.ensure_future(call(word)) for word in (b"a", b"b")))
        passes = 0
        while not asked.done() and passes < 1000:
            time.sleep(PASS)  # noqa: ASYNC251 - the loop is busy: this is what is tested
            await asyncio.sleep(0)
            passes += 1
        assert await asyncio.wait_for(asked, 30) == [b"a", b"b"]
        return passes


def fill(fd: int) -> None:
    """Write until nothing more goes in."""
    try:
        while True:
            os.write(fd, b"1")
    except BlockingIOError:
        return


def test_full_pair_holds_up_no_answer(port: int) -> None:
    assert asyncio.run(passes_until_answers(port, mended=True)) < FEW


def test_grpc_still_waits_by_itself(port: int) -> None:
    """When this fails, gRPC has mended it, and `deployments/grpc_wakeups.py` can go."""
    assert asyncio.run(passes_until_answers(port, mended=False)) > MANY


def test_without_calls_there_is_nothing_to_do() -> None:
    assert pair() == []
    never_wait()

"""The writer: bytes in order whatever the socket does, and no more memory than its bound."""

from __future__ import annotations

import asyncio
from collections.abc import MutableMapping
from typing import Any

from actors.stream import Writer


class Socket:
    """An ASGI `send` that waits while the test keeps it shut."""

    def __init__(self) -> None:
        self.body = b""
        self.open = asyncio.Event()
        self.open.set()
        self.calls = 0

    async def send(self, message: MutableMapping[str, Any]) -> None:
        self.calls += 1
        await self.pass_on(message)

    async def pass_on(self, message: MutableMapping[str, Any]) -> None:
        if not self.open.is_set():
            await self.open.wait()
        self.body += message["body"]


async def test_write_is_done_when_it_returns() -> None:
    socket = Socket()
    writer = Writer(socket.send)
    writer.write(b"a")
    writer.write(b"b")
    assert (socket.body, socket.calls) == (b"ab", 2)


async def test_slow_reader_gets_everything_in_order_in_few_writes() -> None:
    socket = Socket()
    writer = Writer(socket.send)
    socket.open.clear()
    for byte in b"0123456789":
        writer.write(bytes([byte]))
    assert socket.body == b""
    socket.open.set()
    await asyncio.wait_for(writer.drained(), 5)
    writer.write(b"!")
    assert (socket.body, socket.calls) == (b"0123456789!", 3)


async def test_reader_that_never_reads_is_given_up_at_the_bound() -> None:
    socket = Socket()
    writer = Writer(socket.send, bound=100)
    socket.open.clear()
    writer.write(b"x")
    writer.write(b"y" * 101)
    assert writer.overflowed
    writer.write(b"z")
    socket.open.set()
    await asyncio.wait_for(writer.drained(), 5)
    assert socket.body == b"x"


async def test_broken_connection_is_no_error_of_the_pass() -> None:
    async def broken(_message: MutableMapping[str, Any]) -> None:
        raise OSError("gone")

    writer = Writer(broken)
    writer.write(b"a")
    writer.write(b"b")
    await asyncio.wait_for(writer.drained(), 5)


async def test_reader_that_is_behind_is_braked_for_until_it_has_read_all() -> None:
    socket, told = Socket(), []
    writer = Writer(socket.send, credit=10, brake=told.append)
    socket.open.clear()
    writer.write(b"x")
    writer.write(b"y" * 10)
    assert (told, writer.behind) == ([], False)
    writer.write(b"z")
    writer.write(b"z")
    assert (told, writer.behind) == ([True], True)
    socket.open.set()
    await asyncio.wait_for(writer.drained(), 5)
    assert (told, writer.behind) == ([True, False], False)
    assert socket.body == b"x" + b"y" * 10 + b"zz"


async def test_reader_that_is_given_up_is_sent_nothing_more() -> None:
    socket = Socket()
    writer = Writer(socket.send)
    socket.open.clear()
    writer.write(b"x")
    writer.write(b"y")
    writer.give_up()
    socket.open.set()
    await asyncio.wait_for(writer.drained(), 5)
    await asyncio.sleep(0)
    assert writer.overflowed
    assert socket.body == b"x"


async def test_nobody_waits_for_a_reader_that_is_given_up() -> None:
    socket = Socket()
    writer = Writer(socket.send)
    socket.open.clear()
    writer.write(b"x")
    waiting = asyncio.ensure_future(writer.drained())
    await asyncio.sleep(0)
    writer.give_up()
    await asyncio.wait_for(waiting, 5)

"""Near lanes: a lane between two processes of one node, as a Unix socket.

One Ray call or stream item costs 2.4 to 3.6 ms of CPU in the two processes together at 50 items a
second, whatever is in it; the same item over a socket 0.1 (docs/decisions/0007-near-lanes.md). Who
listens tells a path, in a folder that only this user can read; it is gone as soon as the other end
has connected. Whoever cannot reach it (another node, a container) falls back to Ray.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import tempfile
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

ACK_EVERY = 16
"""Items to an acknowledgement, which is one byte."""

CONNECT_WITHIN = 20.0
"""Seconds in which the other end must connect."""

HEAD = 4
"""Bytes before each item: its length, little-endian."""

Take = Callable[[bytes], None]
Lost = Callable[[BaseException], None]


class LaneBrokenError(Exception):
    """The socket of a near lane was closed."""


class Sending(asyncio.Protocol):
    """The end that sends. `opened` is called when the other end is there, `lost` once when the lane
    is gone.
    """

    def __init__(self, lost: Lost, opened: Callable[[], None] = lambda: None) -> None:
        self._lost = lost
        self._opened = opened
        self._transport: asyncio.Transport | None = None
        self._sent = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is no subclass of it
        self._opened()

    def push(self, data: bytes) -> asyncio.Future[None]:
        """Send one item; the acknowledgement that covers it. Raises LaneBrokenError."""
        transport = self._transport
        if transport is None or transport.is_closing():
            raise LaneBrokenError
        if self._sent % ACK_EVERY == 0:
            self._waiting.append(asyncio.get_running_loop().create_future())
        self._sent += 1
        transport.write(len(data).to_bytes(HEAD, "little") + data)
        return self._waiting[-1]

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def data_received(self, data: bytes) -> None:
        for _ in data:
            acknowledged = self._waiting.popleft()
            if not acknowledged.done():
                acknowledged.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        error = exc or LaneBrokenError()
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_exception(error)
                waiting.exception()  # not every acknowledgement is waited for
        self._waiting.clear()
        self._lost(error)


class Receiving(asyncio.Protocol):
    """The end that receives: each item is handed to `take` as it comes, in its order.

    An item that `take` raises at ends the lane, as an unknown defect of either end should.
    """

    def __init__(self, take: Take, lost: Lost) -> None:
        self._take = take
        self._lost = lost
        self._rest = bytearray()
        self._taken = 0
        self._error: Exception | None = None
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is no subclass of it

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def data_received(self, data: bytes) -> None:
        rest = self._rest
        rest += data
        at = 0
        while len(rest) - at >= HEAD:
            end = at + HEAD + int.from_bytes(rest[at : at + HEAD], "little")
            if end > len(rest):
                break
            item = bytes(memoryview(rest)[at + HEAD : end])
            at = end
            try:
                self._take(item)
            except Exception as error:  # noqa: BLE001 - it is told to whoever holds the lane
                self._error = error
                self.close()
                return
            self._taken += 1
            if self._taken % ACK_EVERY == 0 and self._transport is not None:
                self._transport.write(b"\x06")
        del rest[:at]

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost(self._error or exc or LaneBrokenError())


async def listen(end: asyncio.Protocol) -> str:
    """Wait for the other end of `end`, without blocking: the path at which it is to connect, or ""
    where there is no such thing as a Unix socket.
    """
    loop = asyncio.get_running_loop()
    folder = tempfile.mkdtemp(prefix="tdl-")
    path = os.path.join(folder, "s")  # noqa: PTH118 - a Path costs nothing but says no more
    opened: list[Any] = []

    def over() -> None:
        for server in opened:
            server.close()
        opened.clear()
        with contextlib.suppress(OSError):
            Path(path).unlink(missing_ok=True)
            Path(folder).rmdir()

    def connected() -> asyncio.Protocol:
        loop.call_soon(over)
        return end

    try:
        opened.append(await loop.create_unix_server(connected, path))
    except (OSError, NotImplementedError, AttributeError):
        over()
        return ""
    loop.call_later(CONNECT_WITHIN, over)
    return path


async def connect(path: str, end: asyncio.Protocol) -> bool:
    """Connect `end` to whoever listens there; False where there is nobody."""
    if not path:
        return False
    loop = asyncio.get_running_loop()
    try:
        await loop.create_unix_connection(lambda: end, path)
    except (OSError, NotImplementedError, AttributeError):
        return False
    return True

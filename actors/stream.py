"""Streams: one HTTP response each, written in the pass that hands out an engine step.

`Writer.write` writes to the server's transport (`actors.straight`), or runs the server's `send` to
its end at once, without a task. Only when the client
reads so slowly that `send` has to wait does the rest run when the socket drains; what comes in the
meantime waits in memory. Past `credit` bytes whoever makes them is asked to pause until all of it
is read; past `bound` the client is given up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, MutableMapping
from typing import Any

from actors.straight import Write

Message = MutableMapping[str, Any]
Send = Callable[[Message], Awaitable[None]]
Brake = Callable[[bool], None]
"""Told True when its reader is behind, and False when it has caught up."""


class Writer:
    """Writes one response body. Not for use before the response was started.

    `behind` says that it waits for its reader with more than `credit` bytes; `overflowed`, that the
    reader was given up.
    """

    __slots__ = (
        "_bound",
        "_brake",
        "_closed",
        "_credit",
        "_given_up",
        "_pending",
        "_send",
        "_size",
        "_stalled",
        "_straight",
        "behind",
        "overflowed",
    )

    def __init__(
        self,
        send: Send,
        *,
        credit: int = 256 * 2**10,
        bound: int = 16 * 2**20,
        brake: Brake = lambda _: None,
    ) -> None:
        self._send = send
        self._straight: Write | None = getattr(send, "straight", None)
        self._pending: list[bytes] = []
        self._size = 0
        self._credit = credit
        self._bound = bound
        self._brake = brake
        self.behind = False
        self._stalled: asyncio.Future[Any] | None = None
        self._given_up: asyncio.Future[None] | None = None
        self._closed = False
        self.overflowed = False

    def write(self, data: bytes) -> None:
        """Send now, or keep it until the client has read what it was sent before."""
        if self._closed:
            return
        if self._stalled is not None:
            self._size += len(data)
            if self._size > self._bound:
                self.give_up()
                return
            self._pending.append(data)
            if self._size > self._credit and not self.behind:
                self.behind = True
                self._brake(True)
            return
        if self._straight is not None and self._straight(data):
            return
        self._run(self._send({"type": "http.response.body", "body": data, "more_body": True}))

    def give_up(self) -> None:
        """The reader takes nothing: drop what it has not read, and all that follows."""
        self.overflowed = self._closed = True
        self._pending.clear()
        if self._given_up is not None and not self._given_up.done():
            self._given_up.set_result(None)

    def _run(self, sending: Awaitable[None]) -> None:
        """Drive `send` by hand: a coroutine that need not wait ends in its first step."""
        if not isinstance(sending, Coroutine):
            self._stalled = asyncio.ensure_future(sending)
            self._stalled.add_done_callback(self._drained)
            return
        self._step(sending)

    def _step(self, sending: Coroutine[Any, Any, None]) -> None:
        try:
            waits_for = sending.send(None)
        except StopIteration:
            return
        except (OSError, RuntimeError):  # the connection is gone; the server cancels the request
            self._closed = True
            return
        if waits_for is None:  # a bare yield to the loop
            waits_for = asyncio.get_running_loop().create_future()
            waits_for.get_loop().call_soon(waits_for.set_result, None)
        waits_for._asyncio_future_blocking = False  # noqa: SLF001 - what a Task does on a yield
        self._stalled = waits_for
        waits_for.add_done_callback(lambda _: self._resume(sending))

    def _resume(self, sending: Coroutine[Any, Any, None]) -> None:
        self._stalled = None
        self._step(sending)
        if self._stalled is None:
            self._flush()

    def _drained(self, _: asyncio.Future[Any]) -> None:
        self._stalled = None
        self._flush()

    def _flush(self) -> None:
        if self._pending and not self._closed:
            data = b"".join(self._pending)
            self._pending.clear()
            self._size = 0
            self.write(data)
        if self.behind and self._stalled is None:
            self.behind = False
            self._brake(False)

    async def drained(self) -> None:
        """Wait until the socket has taken everything handed in, or the reader is given up."""
        first = asyncio.FIRST_COMPLETED
        while self._stalled is not None and not self._closed:
            self._given_up = asyncio.get_running_loop().create_future()
            await asyncio.wait([self._stalled, self._given_up], return_when=first)
            await asyncio.sleep(0)  # lets the callbacks run that may stall it again

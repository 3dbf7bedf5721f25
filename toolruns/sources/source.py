"""The interface of a source, and the two ways to be one: asynchronous, or in a thread."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, Protocol, TypeVar

from toolruns.signals import Chunk, Exhausted, Truncated

T = TypeVar("T")

Answer = Chunk | Exhausted | Truncated

CLOSE_WITHIN = 0.15
"""Seconds that closing may take before the source is left to its thread."""
INTERRUPT_EVERY = 0.05


class SourceError(Exception):
    """The source cannot go on; the message is safe to show to the model and says what to do."""


class Source(Protocol):
    """`open` once, `read` one at a time, `close` once and at any moment, also during a read."""

    async def open(self) -> None: ...

    async def read(self, rows: int) -> Answer:
        """About `rows` more rows (one page, where pages cannot be split). Raises SourceError."""
        ...

    async def close(self) -> None: ...


class Cursor(Protocol):
    """A source whose library blocks. `interrupt` may come from another thread at any moment."""

    def open(self) -> None: ...

    def read(self, rows: int) -> Answer: ...

    def interrupt(self) -> None: ...

    def close(self) -> None: ...


class InThread:
    """A Source made of a Cursor, on a thread of its own."""

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="source")
        self._closed = threading.Event()

    async def open(self) -> None:
        await self._call(self._cursor.open)

    async def read(self, rows: int) -> Answer:
        return await self._call(self._cursor.read, rows)

    async def close(self) -> None:
        if self._closed.is_set():
            return
        self._closed.set()
        closing = self._pool.submit(self._close)
        self._pool.shutdown(wait=False)
        threading.Thread(target=self._hound, args=(closing,), daemon=True).start()
        await asyncio.wait({asyncio.wrap_future(closing)}, timeout=CLOSE_WITHIN)

    def _hound(self, closing: Future[None]) -> None:
        """Interrupt until the thread is free: an interrupt that comes before its statement has
        begun is lost, and the statement might never end.
        """
        while not closing.done():
            with contextlib.suppress(Exception):  # what is half open may refuse to be interrupted
                self._cursor.interrupt()
            wait({closing}, timeout=INTERRUPT_EVERY)

    def _close(self) -> None:
        with contextlib.suppress(Exception):
            self._cursor.close()

    async def _call(self, function: Callable[..., T], *arguments: Any) -> T:
        if self._closed.is_set():
            message = "the source is closed"
            raise SourceError(message)
        return await asyncio.get_running_loop().run_in_executor(self._pool, function, *arguments)

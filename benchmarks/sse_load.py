"""A load of SSE streams from one process: bare sockets, arrival times, no parsing of what comes."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any


@dataclass
class Arrivals:
    """One stream: when it was sent, and (time, events) of everything that came. Seconds."""

    sent: float = 0.0
    times: list[tuple[float, int]] = field(default_factory=list)
    status: bytes = b""
    tail: bytes = b""

    @property
    def tokens(self) -> int:
        return sum(count for _, count in self.times)

    @property
    def first(self) -> float:
        return self.times[0][0] - self.sent

    def gaps(self) -> list[float]:
        at = [when for when, _ in self.times]
        return [b - a for a, b in pairwise(at)]


class Stream(asyncio.Protocol):
    """One request; counts `mark` in the bytes that come back until the connection closes."""

    def __init__(self, request: bytes, mark: bytes, done: asyncio.Future[Arrivals]) -> None:
        self._request = request
        self._mark = mark
        self._done = done
        self._seen = Arrivals()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - narrows the type
        self._transport = transport
        self._seen.sent = time.perf_counter()
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        seen = self._seen
        if not seen.status:
            seen.status = data[:15]
        whole = seen.tail + data
        count = whole.count(self._mark)
        seen.tail = whole[-len(self._mark) + 1 :]
        if count:
            seen.times.append((time.perf_counter(), count))
        if b"0\r\n\r\n" in data[-8:] and self._transport:
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._done.done():
            self._done.set_result(self._seen)


def http(path: str, body: dict[str, Any], port: int) -> bytes:
    """A whole POST request that asks for the connection to be closed after it."""
    data = json.dumps(body).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
        f"Connection: close\r\nContent-Length: {len(data)}\r\n\r\n"
    )
    return head.encode() + data


async def load(
    port: int, requests: list[bytes], mark: bytes, *, stagger: float, limit: float
) -> list[Arrivals]:
    """Send all requests, `stagger` seconds apart, and wait for all of them, `limit` at most."""
    loop = asyncio.get_running_loop()
    waiting: list[asyncio.Future[Arrivals]] = []

    def maker(request: bytes, done: asyncio.Future[Arrivals]) -> Callable[[], Stream]:
        return lambda: Stream(request, mark, done)

    for request in requests:
        done: asyncio.Future[Arrivals] = loop.create_future()
        waiting.append(done)
        await loop.create_connection(maker(request, done), "127.0.0.1", port)
        await asyncio.sleep(stagger)
    async with asyncio.timeout(limit):
        return await asyncio.gather(*waiting)


def percentile(values: list[float], share: float) -> float:
    """The value below which `share` of them lie."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]

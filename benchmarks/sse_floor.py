"""The least that a Python process can do for a token: quote it, frame it, write it to its socket.

All streams in one wake-up for each engine step, on bare sockets: no parsing, no HTTP server, no
other process. A figure of this machine at this moment, by which other figures can be read.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Iterator
from subprocess import PIPE, Popen

import msgspec
import psutil
from sse_load import Arrivals, http, load

STEP = 0.020
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
EVENT = (
    b'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,'
    b'"delta":{"type":"text_delta","text":%b}}\n\n'
)
MARK = b'"type":"content_block_delta"'

quote = msgspec.json.Encoder().encode


class Client(asyncio.Protocol):
    """One stream, from the first byte of its request on."""

    def __init__(self, streams: set[Client], tokens: int) -> None:
        self._streams = streams
        self._left = tokens
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment] # uvloop's is no subclass

    def data_received(self, data: bytes) -> None:
        if self not in self._streams and self._transport is not None:
            self._streams.add(self)
            self._transport.write(HEAD)

    def connection_lost(self, exc: Exception | None) -> None:
        self._streams.discard(self)

    def step(self, word: str) -> None:
        if self._transport is None:
            return
        body = EVENT % quote(word)
        self._transport.write(b"%x\r\n%b\r\n" % (len(body), body))
        self._left -= 1
        if not self._left:
            self._transport.write(b"0\r\n\r\n")
            self._streams.discard(self)


async def serve(tokens: int) -> None:
    """Serve until the process is ended; the port is the first line of its output."""
    loop = asyncio.get_running_loop()
    streams: set[Client] = set()
    server = await loop.create_server(lambda: Client(streams, tokens), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    due = loop.time()
    while True:
        due = max(due + STEP, loop.time())
        await asyncio.sleep(due - loop.time())
        for stream in list(streams):
            stream.step("consectetur ")


@contextlib.contextmanager
def running(tokens: int) -> Iterator[tuple[psutil.Process, int]]:
    """A floor process, and its port."""
    with Popen([sys.executable, __file__, str(tokens)], stdout=PIPE) as process:  # noqa: S603
        try:
            out = process.stdout
            port = int(out.readline()) if out is not None else 0
            yield psutil.Process(process.pid), port
        finally:
            process.kill()


def floor(streams: int, tokens: int) -> float:
    """CPU microseconds per token at `streams` streams of `tokens` tokens, 50 a second each."""
    with running(tokens) as (process, port):
        before = process.cpu_times()
        requests = [http("/", {}, port)] * streams
        limit = tokens * STEP * 3 + 60
        seen: list[Arrivals] = asyncio.run(load(port, requests, MARK, stagger=0.005, limit=limit))
        after = process.cpu_times()
    total = sum(stream.tokens for stream in seen)
    return (after.user - before.user + after.system - before.system) / total * 1e6


if __name__ == "__main__":
    import uvloop

    uvloop.run(serve(int(sys.argv[1])))

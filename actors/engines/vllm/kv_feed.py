"""Reads vLLM's KV events back into the process that owns the engine: subscribe, fill gaps, hand on.

vLLM publishes numbered batches on one ipc socket and replays its last ten thousand on another. A
number that was skipped (a subscriber that joined late, a full queue) is asked for again; what can
no longer be had is said as `KvCleared`, so that a reader forgets blocks but never believes in
wrong ones.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
import tempfile
from pathlib import Path

from msgspec import Struct
from zmq import DEALER, SUB
from zmq.asyncio import Context, Socket

from actors.engines.engine import KvCleared, KvSink
from actors.engines.vllm.kv_wire import decode_batch
from turns.errors import EngineError

REPLAY_WITHIN_S = 5.0  # vLLM looks for replay requests ten times a second
log = logging.getLogger(__name__)


class KvEndpoints(Struct, frozen=True):
    """Where vLLM publishes and replays. Both are bound by vLLM, as it binds every ipc address."""

    events: str
    replay: str


class KvFeed:
    """From `start` to `close`, every batch goes to the sink once and in order."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="treadle-kv-"))
        self.endpoints = KvEndpoints(
            f"ipc://{self._folder}/events",
            f"ipc://{self._folder}/replay",
        )
        self._context = Context()
        self._task: asyncio.Task[None] | None = None
        self._next = 0

    def start(self, sink: KvSink) -> None:
        events = self._context.socket(SUB)
        events.set_hwm(0)
        events.subscribe(b"")
        events.connect(self.endpoints.events)
        self._task = asyncio.create_task(self._read(events, sink))

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._context.destroy(linger=0)
        shutil.rmtree(self._folder, ignore_errors=True)

    async def _read(self, events: Socket, sink: KvSink) -> None:
        try:
            while True:
                _, number, payload = await events.recv_multipart()
                position = int.from_bytes(number, "big")
                if position > self._next:
                    await self._fill(position, sink)
                if position == self._next:
                    self._take(payload, sink)
        except EngineError:
            # The engine serves on without its events; a router falls back on what it sent where.
            log.exception("KV events stop here")

    def _take(self, payload: bytes, sink: KvSink) -> None:
        self._next += 1
        if found := decode_batch(payload):
            sink(found)

    async def _fill(self, position: int, sink: KvSink) -> None:
        """Hand on the batches before `position` that did not come; say which are lost."""
        try:
            async with asyncio.timeout(REPLAY_WITHIN_S):
                missed = await self._replay()
        except TimeoutError:
            missed = []
        for number, payload in missed:
            if self._next <= number < position:
                self._skip_to(number, sink)
                self._take(payload, sink)
        self._skip_to(position, sink)

    def _skip_to(self, position: int, sink: KvSink) -> None:
        if self._next < position:
            log.warning("KV events %d to %d are lost", self._next, position - 1)
            self._next = position
            sink([KvCleared()])

    async def _replay(self) -> list[tuple[int, bytes]]:
        with self._context.socket(DEALER) as socket:
            socket.linger = 0
            socket.connect(self.endpoints.replay)
            await socket.send_multipart([b"", self._next.to_bytes(8, "big")])
            batches: list[tuple[int, bytes]] = []
            while True:
                *_, number, payload = await socket.recv_multipart()
                position = int.from_bytes(number, "big", signed=True)
                if position < 0:
                    return batches
                batches.append((position, payload))

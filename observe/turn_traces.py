"""Traces of turns: what each was like, for who asked it, and, where an operator wants it, in files.

Unlike the console's records (`observe.record`) a trace is its caller's own and has no content. In a
file it is one JSON line, with the request's body word for word, so that it can be asked again of
another deployment (`treadle replay`). That is what people wrote: off unless a folder is named, in
files that their owner alone may read.
"""

from __future__ import annotations

import logging
import os
import queue
import threading
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
from msgspec import Raw, Struct

from turns.turn import Api

log = logging.getLogger(__name__)

WAITING = 1000
"""Lines that may wait to be written; of more, what comes is lost and counted."""

DAY_FORMAT = "%Y-%m-%d"


NOTHING = Raw()


class BlockSeen(Struct, frozen=True, omit_defaults=True):
    """A block of a reply by its kind, its characters and, of a call, its tool; `cut` is why."""

    kind: str
    size: int
    tool: str = ""
    cut: str = ""


class TurnTrace(Struct, frozen=True, omit_defaults=True):
    """A turn as it was. `at` in Unix seconds, durations in seconds, -1 where there is none;
    tokens as in `turns.events.Usage`. `body` is the request's JSON, absent where it is not kept.
    """

    turn: str
    request: str
    at: float
    api: Api
    path: str
    model: str
    session: str = ""
    harness: str = ""
    stream: bool = False
    seconds: float = 0.0
    ttft: float = -1.0
    gap: float = -1.0
    longest_gap: float = -1.0
    stop: str = ""
    failed: str = ""
    input: int = 0
    cached: int = 0
    output: int = 0
    reasoning: int = 0
    blocks: tuple[BlockSeen, ...] = ()
    body: Raw = NOTHING


encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder(TurnTrace).decode


class TraceFiles:
    """`folder` "" writes no file. One file a day and process; `most_bytes` of a day, not more."""

    def __init__(
        self,
        folder: str = "",
        *,
        most_bytes: int = 2**30,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.lost = 0
        self._folder = Path(folder) if folder else None
        self._most = most_bytes
        self._clock = clock
        self._lines: queue.Queue[bytes] = queue.Queue(WAITING)
        self._thread: threading.Thread | None = None

    def add(self, trace: TurnTrace, body: bytes) -> None:
        """A turn is over. Costs no write: a thread does that."""
        if self._folder is None:
            return
        line = encode(msgspec.structs.replace(trace, body=Raw(_one_line(body)))) + b"\n"
        try:
            self._lines.put_nowait(line)
        except queue.Full:
            self.lost += 1
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._write_on, daemon=True)
            self._thread.start()

    def settled(self) -> None:
        """Wait until all that was added is written."""
        self._lines.join()

    def _write_on(self) -> None:
        while True:
            line = self._lines.get()
            try:
                self._write(line)
            except OSError as error:
                if not self.lost:
                    log.warning("turns cannot be recorded: %s", error)
                self.lost += 1
            finally:
                self._lines.task_done()

    def _write(self, line: bytes) -> None:
        if self._folder is None:
            return
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        day = time.strftime(DAY_FORMAT, time.gmtime(self._clock()))
        path = self._folder / f"turns-{day}-{os.getpid()}.jsonl"
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            if os.fstat(descriptor).st_size + len(line) > self._most:
                self.lost += 1
                return
            os.write(descriptor, line)
        finally:
            os.close(descriptor)


def _one_line(body: bytes) -> bytes:
    """JSON without line breaks between its parts; its strings have none."""
    return body.replace(b"\r", b" ").replace(b"\n", b" ")

"""The interface of an engine. One file a kind beside this one; nothing above knows which it is.

An engine hands out what one step produced for all its turns in one call (`on_frames`), so that the
cost per token falls as load rises. It never blocks the event loop it was started on, and calls its
sinks on that loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from msgspec import Struct

from router.kv import KvCleared, KvEvent, KvRemoved, KvStored
from turns.frames import Frame, Job

__all__ = [
    "Engine",
    "EngineInfo",
    "EngineStats",
    "FrameSink",
    "KvCleared",
    "KvEvent",
    "KvRemoved",
    "KvSink",
    "KvStored",
]


class EngineInfo(Struct, frozen=True):
    """What never changes while an engine lives. Sizes in tokens; `kv_blocks` 0 means unknown.

    An engine that is given token ids alone does not see images.
    """

    block_size: int
    max_model_len: int
    vocab_size: int
    max_turns: int
    kv_blocks: int = 0
    reads_conversation: bool = False
    sees_images: bool = False


class EngineStats(Struct, frozen=True, array_like=True):
    """Load now: turns running and waiting, prompt tokens still to prefill, share of KV in use."""

    running: int = 0
    waiting: int = 0
    prefill_tokens: int = 0
    kv_used: float = 0.0
    prompt_tokens_total: int = 0
    cached_tokens_total: int = 0
    output_tokens_total: int = 0
    aborts_total: int = 0


FrameSink = Callable[[list[Frame]], None]
KvSink = Callable[[Sequence[KvEvent]], None]


class Engine(Protocol):
    """Begin and abort do not wait; everything that happens to a turn comes as a frame."""

    async def start(self, *, on_frames: FrameSink, on_kv: KvSink) -> EngineInfo:
        """Load and warm up. Raises EngineError with what to do when it cannot."""
        ...

    async def look(self, job: Job) -> None:
        """Read the pictures of a job that has some, right before `begin`; InvalidRequestError for
        one that cannot be read.
        """
        ...

    def begin(self, job: Job) -> None:
        """Take the turn. Raises InvalidRequestError (bad ids, too long) or OverloadedError."""
        ...

    def abort(self, turn: str) -> None:
        """End the turn now; its last frame has finish `abort`. An unknown turn is no error."""
        ...

    def stats(self) -> EngineStats: ...

    async def check(self) -> None:
        """Raise EngineError when the engine is dead or hangs."""
        ...

    async def drain(self, timeout: float) -> None:
        """Take no new turn, wait until the running ones have ended, at most `timeout` seconds."""
        ...

    async def stop(self) -> None: ...

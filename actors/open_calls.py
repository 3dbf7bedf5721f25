"""Open calls: the tool calls that models made, so that a tool may ask about the one that began it.

An ingress remembers its latest calls itself, and every call stands in the store for a while: a tool
is answered by whichever ingress it asks. A call is found by its owner alone; the call of somebody
else is as unknown as one that nobody made.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
import zlib
from collections import OrderedDict
from collections.abc import Callable

from msgspec import DecodeError, Struct, msgpack

from actors.spoken import spoken
from sessions.records import OPEN_CALL, OPEN_CALL_TURN
from sessions.store import Store, write
from turns.blocks import Reasoning, Text, ToolCall
from turns.errors import InvalidRequestError
from turns.events import Usage
from turns.reply import Reply
from turns.turn import Turn

OPEN_FOR_S = 900.0
"""Seconds after which a call that still runs is no longer asked about."""
LARGEST = 8_000_000
"""Bytes of a packed turn; a larger one is known to its own ingress only."""
AT_ONCE = 100
"""Turns on their way into the store, at most; beyond that they are known to this ingress only."""


class OpenCall(Struct, frozen=True):
    """A turn that made tool calls: who asked it, what was said, when (seconds since the epoch).
    `size` is as in `Ingress.begin`; `made` counts the calls of the session up to these.
    """

    owner: str
    turn: Turn
    blocks: tuple[Text | Reasoning | ToolCall, ...]
    size: int
    usage: Usage = Usage()
    at: float = 0.0
    made: int = 0

    @property
    def names(self) -> list[str]:
        return [block.id for block in self.blocks if isinstance(block, ToolCall)]


_encode = msgpack.Encoder().encode
_decode = msgpack.Decoder(OpenCall).decode


class OpenCalls:
    """The latest `most` calls of this process, by the id that the client was told; with a `store`
    also those of the others.
    """

    def __init__(
        self, most: int, store: Store | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        self.most = most
        self.clock = clock
        self._store = store
        self._sessions: OrderedDict[tuple[str, str], int] = OrderedDict()
        self._calls: OrderedDict[str, OpenCall] = OrderedDict()
        self._sharing: set[asyncio.Task[None]] = set()

    def note(self, owner: str, turn: Turn, reply: Reply, size: int) -> None:
        """Remember the reply's calls. Without an owner nobody could ask, so nothing is kept."""
        blocks = spoken(turn, reply)
        calls = sum(isinstance(block, ToolCall) for block in blocks)
        if not owner or not self.most or not calls:
            return
        before = self._sessions.get((owner, turn.session), 0)
        made = max(before, _told(turn)) + calls if turn.session else 0
        call = OpenCall(owner, turn, tuple(blocks), size, reply.usage, self.clock(), made)
        self._remember(call)
        if self._store is not None and len(self._sharing) < AT_ONCE:
            task = asyncio.ensure_future(_share(self._store, call))
            self._sharing.add(task)
            task.add_done_callback(self._sharing.discard)

    def further(self, call: OpenCall) -> float:
        """Calls that the session is expected to make behind this one: as many as sessions do on
        average, and at least one more while it lives. None can be expected of no session.
        """
        if not call.turn.session:
            return 0.0
        mean = sum(self._sessions.values()) / len(self._sessions)
        return max(1.0, mean - call.made)

    async def find(self, call_id: str, owner: str) -> OpenCall:
        """Raises InvalidRequestError, the same for a call of another owner and for none."""
        call = self._calls.get(call_id)
        if call is None or call.owner != owner:
            call = await self._of_others(call_id, owner)
        if call is None:
            raise InvalidRequestError("no such open tool call", param="call_id")
        return call

    async def _of_others(self, call_id: str, owner: str) -> OpenCall | None:
        """The owner's call as another ingress left it in the store."""
        if self._store is None or not owner or not self.most:
            return None
        call = await _shared(self._store, call_id, owner)
        if call is not None:
            self._remember(call)
        return call

    async def settled(self) -> None:
        """Wait until what is on its way is in the store."""
        while self._sharing:
            await asyncio.wait(set(self._sharing))

    def _remember(self, call: OpenCall) -> None:
        for name in call.names:
            self._calls[name] = call
        while len(self._calls) > self.most:
            self._calls.popitem(last=False)
        if not call.turn.session:
            return
        place = (call.owner, call.turn.session)
        self._sessions[place] = max(self._sessions.pop(place, 0), call.made)
        while len(self._sessions) > self.most:
            self._sessions.popitem(last=False)


def _told(turn: Turn) -> int:
    """The calls that a turn's own history tells of."""
    return sum(isinstance(block, ToolCall) for one in turn.messages for block in one.blocks)


async def _share(store: Store, call: OpenCall) -> None:
    with contextlib.suppress(TypeError, OverflowError):  # a turn that holds what no record can
        data = await asyncio.to_thread(lambda: zlib.compress(_encode(call), 1))
        if len(data) > LARGEST:
            return
        owner, turn = call.owner, call.turn.id
        named = [write(OPEN_CALL_TURN, owner, name, turn, ttl=OPEN_FOR_S) for name in call.names]
        await store.put(write(OPEN_CALL, owner, turn, data, ttl=OPEN_FOR_S), *named)


async def _shared(store: Store, call_id: str, owner: str) -> OpenCall | None:
    (turn,) = await store.get(OPEN_CALL_TURN, owner, call_id)
    (data,) = [None] if turn is None else await store.get(OPEN_CALL, owner, turn)
    if data is None:
        return None
    try:
        return await asyncio.to_thread(lambda: _decode(zlib.decompress(data)))
    except (DecodeError, zlib.error):  # of another version of ours
        return None

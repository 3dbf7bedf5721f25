"""Past turns: the latest turns of a session as they were run, for who asks why a prefix broke.

Bounded in number and in time. A turn is packed, since most of it is the text of its request: it
can be rendered again by any ingress that serves its model.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

from msgspec import DecodeError, Struct, msgpack

from sessions.records import PAST, PAST_NAME, RecordError
from sessions.store import Store, write
from sessions.token_ids import pack, unpack
from turns.blocks import Reasoning, Text, ToolCall
from turns.turn import Turn

EACH = 4
"""Turns kept of a session, whose sub-agents talk under the same name."""

LARGEST = 8_000_000
"""Bytes of a turn, packed; a larger one is not kept."""

Answer = tuple[Text | Reasoning | ToolCall, ...]


class PastTurn(Struct, frozen=True):
    """A turn that was run: the ids it was asked and that it generated, what these said.

    `reply_at` is as in a prompt; reasoning `before` that message was forgotten; it ended `at` that
    time.
    """

    turn: Turn
    ids: list[int]
    output: list[int]
    answer: Answer = ()
    reply_at: int = -1
    before: int = 0
    at: float = 0.0


class _Packed(Struct, frozen=True, array_like=True):
    turn: Turn
    ids: bytes
    output: bytes
    answer: Answer
    reply_at: int
    before: int
    at: float


_encode = msgpack.Encoder().encode
_decode = msgpack.Decoder(_Packed).decode


def packed(past: PastTurn) -> bytes:
    """TypeError or OverflowError for a turn that holds what no record can."""
    whole = _Packed(
        past.turn,
        pack(past.ids),
        pack(past.output),
        past.answer,
        past.reply_at,
        past.before,
        past.at,
    )
    return zlib.compress(_encode(whole), 1)


def unpacked(data: bytes) -> PastTurn:
    """RecordError when the bytes are not from `packed`."""
    try:
        whole = _decode(zlib.decompress(data))
        ids, output = unpack(whole.ids), unpack(whole.output)
    except (DecodeError, ValueError, zlib.error) as error:
        raise RecordError(f"a past turn cannot be read: {error}") from error
    return PastTurn(whole.turn, ids, output, whole.answer, whole.reply_at, whole.before, whole.at)


class PastTurns:
    """`ttl` in seconds."""

    def __init__(self, store: Store, *, ttl: float) -> None:
        self._store = store
        self._ttl = ttl

    async def keep(self, owner: str, name: str, session: str, data: bytes) -> None:
        """Keep a packed turn under its `name`, behind those of its session."""
        if len(data) > LARGEST:
            return
        place = session or name
        await self._store.append(PAST, owner, place, [data], ttl=self._ttl, keep=EACH)
        await self._store.put(write(PAST_NAME, owner, name, place, ttl=self._ttl))

    async def around(self, owner: str, name: str) -> Sequence[PastTurn]:
        """The turns of the session that the turn was of, oldest first; () where it is unknown."""
        (place,) = await self._store.get(PAST_NAME, owner, name)
        if place is None:
            return ()
        return [unpacked(data) for data in await self._store.items(PAST, owner, place)]

"""Records: what is kept, and the kinds under which it is kept. Msgpack, fields by name, so that a
field may be added while old records are still about. Times are seconds since the epoch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, Literal, TypeVar

from msgspec import DecodeError, Struct, field, msgpack
from msgspec.structs import replace

from turns.events import Stop, Usage
from turns.reply import ReplyBlock
from turns.turn import Api, Hints

T = TypeVar("T")

LASTING = ("priority", "tier", "osl", "latency_sensitivity", "speculative_prefill", "retain_s")
"""Hints that hold for a session; the others are of one turn."""

_NONE = Hints()


class RecordError(ValueError):
    """What is stored cannot be read as its kind: it is of another version, or not ours. `rest` is
    what a call that asked for several would have given without it; None for any other call.
    """

    def __init__(self, message: str, rest: list[Any] | None = None) -> None:
        super().__init__(message)
        self.rest = rest


class SessionSeen(Struct, frozen=True):
    """A turn that shows a session. Empty fields say nothing and change nothing, nor do hints that
    the turn does not give. `osl` is how long its replies are expected to be, in tokens, by those
    that were seen.
    """

    owner: str
    key: str
    at: float
    harness: str = ""
    model: str = ""
    parent: str = ""
    hints: Hints = _NONE
    osl: int = 0


class SessionRecord(Struct, frozen=True):
    """A session as last seen. `turns` counts them all; each of `hints` is the latest given."""

    owner: str
    key: str
    created: float
    last_seen: float
    turns: int = 1
    harness: str = ""
    model: str = ""
    parent: str = ""
    hints: Hints = field(default_factory=Hints)
    osl: int = 0


def lasting(hints: Hints) -> dict[str, Any]:
    """The hints of a turn that its session shall remember, by name."""
    return {
        name: value for name in LASTING if (value := getattr(hints, name)) != getattr(_NONE, name)
    }


def touched(record: SessionRecord | None, seen: SessionSeen) -> SessionRecord:
    """The session after a turn: the parent is the first one told, all else the latest told."""
    before = record or SessionRecord(seen.owner, seen.key, seen.at, seen.at, turns=0)
    return SessionRecord(
        owner=seen.owner,
        key=seen.key,
        created=before.created,
        last_seen=seen.at,
        turns=before.turns + 1,
        harness=seen.harness or before.harness,
        model=seen.model or before.model,
        parent=before.parent or seen.parent,
        hints=replace(before.hints, **lasting(seen.hints)),
        osl=seen.osl or before.osl,
    )


class StoredReply(Struct, frozen=True):
    """The reply of one turn. `ids` are the generated token ids as `token_ids.pack` gives them;
    `prompt_hash` is the hash of the prompt's token ids.
    """

    turn: str
    session: str
    prompt_hash: int
    blocks: tuple[ReplyBlock, ...]
    ids: bytes
    usage: Usage
    stop: Stop | None
    created: float


class StoredResponse(Struct, frozen=True):
    """A response that its client may fetch, continue, cancel or delete by id. `input` holds the
    request's input items and `body` the response object, both JSON as the API spells them;
    `ancestors` are the ids of the responses before it, oldest first.
    """

    id: str
    api: Api
    model: str
    created: float
    status: Literal["in_progress", "queued", "completed", "incomplete", "failed", "cancelled"]
    input: bytes
    body: bytes
    previous: str = ""
    conversation: str = ""
    session: str = ""
    ancestors: tuple[str, ...] = ()


class Idled(Struct, frozen=True):
    """A conversation as its last turn left it: reasoning before message `before` is gone."""

    at: float
    before: int


class Kind(Generic[T]):
    """A kind of record: its name in keys and its type. A turn cannot go on without a record that
    it `needs`: where the store is away, asking for one is an error and not "there is none".
    """

    def __init__(self, name: str, of: type[T], *, needed: bool = False) -> None:
        self.name = name
        self.needed = needed
        self._decoder = msgpack.Decoder(of)

    def encode(self, record: T) -> bytes:
        return _encoder.encode(record)

    def decode(self, data: bytes) -> T:
        """RecordError when the bytes are no record of this kind."""
        try:
            return self._decoder.decode(data)
        except DecodeError as error:
            raise RecordError(f"a stored {self.name} cannot be read: {error}") from error

    def decode_each(self, found: Sequence[bytes | None]) -> list[T | None]:
        """Each that was found. RecordError where one is no record, with None for it in `rest`."""
        try:
            return [None if data is None else self.decode(data) for data in found]
        except RecordError as error:
            raise RecordError(str(error), [self._decoded(data) for data in found]) from error

    def decode_list(self, found: Sequence[bytes]) -> list[T]:
        """A list. RecordError where an item is no record, with the others in `rest`."""
        try:
            return [self.decode(data) for data in found]
        except RecordError as error:
            read = [self._decoded(data) for data in found]
            raise RecordError(str(error), [one for one in read if one is not None]) from error

    def _decoded(self, data: bytes | None) -> T | None:
        try:
            return None if data is None else self.decode(data)
        except RecordError:
            return None


_encoder = msgpack.Encoder()

REPLY = Kind("reply", StoredReply)
TURNS = Kind("turns", str)  # of a session: its turns' ids, a list
LEDGER = Kind("ledger", bytes)
IDLED = Kind("idled", Idled)
OVER = Kind("over", float)  # of a session: when its last turn was over
PAST = Kind("past", bytes)  # of a session: its latest turns, a list
PAST_NAME = Kind("past_name", str)  # of a turn: the list that it is in
OPEN_CALL = Kind("open_call", bytes)  # a turn whose tool calls may still run, with its reply
OPEN_CALL_TURN = Kind("open_call_turn", str)  # of a tool call: the turn that made it
SECRET = Kind("secret", str)  # of the cluster: what reasoning is sealed with
RESPONSE = Kind("response", StoredResponse, needed=True)
BEAT = Kind("beat", bool, needed=True)  # of a response: somebody is at work on it
CONVERSATION = Kind("conversation", bytes, needed=True)  # its items, a list of JSON texts
CONVERSATION_HEAD = Kind("conversation_head", bytes, needed=True)  # what is shown of it, JSON

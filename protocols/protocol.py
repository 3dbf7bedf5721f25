"""The face that every API shows: decode a request, encode its events, spell an error."""

from __future__ import annotations

import typing
from collections.abc import Mapping, Sequence

from protocols.seals import Seal
from turns.errors import TreadleError
from turns.events import Event
from turns.reply import Reply
from turns.turn import Turn


class Encoder(typing.Protocol):
    """Writes one turn. One encoder serves one turn, streamed or whole."""

    @property
    def finished(self) -> bool:
        """Whether a terminal event was written; nothing is written after it."""

    def encode(self, events: Sequence[Event]) -> bytes:
        """The SSE bytes of these events; how events are batched does not change the bytes."""

    def keepalive(self) -> bytes:
        """A real event of the API that says nothing, for a stream that has been silent."""

    def whole(self, reply: Reply) -> tuple[int, bytes]:
        """(status, body) of the same turn when it is not streamed."""


class Protocol(typing.Protocol):
    """One public API."""

    @property
    def path(self) -> str:
        """Where it is served: `/v1/messages`."""

    def decode(self, body: bytes, headers: Mapping[str, str], *, turn_id: str) -> Turn:
        """A request as a turn. Raises `InvalidRequestError`, its `param` the field, and no other.

        `headers` has lower-case keys. `Turn.echo["ignored"]` lists what was sent and not honoured.
        """

    def encoder(self, turn: Turn, *, created: int, model: str, seal: Seal | None = None) -> Encoder:
        """The encoder of a turn; `created` in Unix seconds, `model` as the client shall see it.

        `seal` closes each span of reasoning; without it seals carry nothing.
        """

    def error(self, err: TreadleError, *, request_id: str) -> tuple[int, dict[str, str], bytes]:
        """(status, headers, body) of an error before the first byte."""

"""The face of the Responses API."""

from __future__ import annotations

from collections.abc import Mapping

from protocols import errors, sse
from protocols.dispatch import announced
from protocols.protocol import Encoder
from protocols.responses import decode as decoding
from protocols.responses.compaction import CompactionEncoder
from protocols.responses.encode import ResponsesEncoder
from protocols.seals import Seal
from turns.errors import TreadleError
from turns.reply import Reply
from turns.turn import Turn


class Responses:
    """`POST /v1/responses`."""

    path = "/v1/responses"

    def decode(self, body: bytes, headers: Mapping[str, str], *, turn_id: str) -> Turn:
        return decoding.decode(body, headers, turn_id=turn_id)

    def encoder(self, turn: Turn, *, created: int, model: str, seal: Seal | None = None) -> Encoder:
        encoder = ResponsesEncoder(turn, created=created, model=model, seal=seal)
        if turn.echo.get("compact"):
            return CompactionEncoder(encoder)
        return announced(encoder, turn)

    def error(self, err: TreadleError, *, request_id: str) -> tuple[int, dict[str, str], bytes]:
        return errors.openai(err, request_id)

    def kept(
        self,
        turn: Turn,
        reply: Reply | None,
        *,
        created: int,
        model: str,
        seal: Seal | None = None,
    ) -> bytes:
        """The response as it is stored and fetched: queued while there is no reply, and a
        response still when the turn died.
        """
        bare = ResponsesEncoder(turn, created=created, model=model)
        if reply is None:
            return sse.dumps(bare.waiting("queued"))
        if reply.failed is not None:
            return sse.dumps(bare.failed(reply.failed))
        encoder = self.encoder(turn, created=created, model=model, seal=seal)
        return encoder.whole(reply)[1]

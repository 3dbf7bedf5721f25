"""The face of the Chat Completions API."""

from __future__ import annotations

from collections.abc import Mapping

from protocols import errors
from protocols.chat import decode as decoding
from protocols.chat.encode import ChatEncoder
from protocols.dispatch import announced
from protocols.protocol import Encoder
from protocols.seals import Seal
from turns.errors import TreadleError
from turns.turn import Turn


class Chat:
    """`POST /v1/chat/completions`."""

    path = "/v1/chat/completions"

    def decode(self, body: bytes, headers: Mapping[str, str], *, turn_id: str) -> Turn:
        return decoding.decode(body, headers, turn_id=turn_id)

    def encoder(
        self,
        turn: Turn,
        *,
        created: int,
        model: str,
        seal: Seal | None = None,
    ) -> Encoder:
        return announced(ChatEncoder(turn, created=created, model=model, seal=seal), turn)

    def error(self, err: TreadleError, *, request_id: str) -> tuple[int, dict[str, str], bytes]:
        return errors.openai(err, request_id)

"""The replies to one request as the choices of one completion, streamed or whole."""

from __future__ import annotations

from collections.abc import Sequence

from protocols import errors
from protocols.chat.encode import ChatEncoder
from protocols.dispatch import announced
from protocols.seals import Seal
from turns.events import Event, TurnEnded, TurnFailed, Usage
from turns.reply import Reply
from turns.turn import Turn


class ChoicesEncoder:
    """Writes the turns of `protocols.chat.choice.many`, each by its own encoder."""

    def __init__(
        self, turns: Sequence[Turn], *, created: int, model: str, seal: Seal | None = None
    ) -> None:
        self.finished = False
        self._bare = [ChatEncoder(turn, created=created, model=model, seal=seal) for turn in turns]
        pairs = zip(self._bare, turns, strict=True)
        self._encoders = [announced(encoder, turn) for encoder, turn in pairs]
        self._usages: list[Usage] = []

    def encode(self, choice: int, events: Sequence[Event]) -> bytes:
        """The bytes of one choice's events; behind the last of all, what ends the stream."""
        if self.finished:
            return b""
        out = self._encoders[choice].encode(events)
        for event in events:
            if isinstance(event, TurnEnded):
                self._usages.append(event.usage)
        if any(isinstance(event, TurnFailed) for event in events):
            self.finished = True
        elif len(self._usages) == len(self._encoders):
            self.finished = True
            out += self._bare[0].done(together(self._usages))
        return out

    def keepalive(self) -> bytes:
        if self.finished:  # one that failed has ended them all
            return b""
        going = (encoder for encoder in self._encoders if not encoder.finished)
        return b"".join([encoder.keepalive() for encoder in going][:1])

    def whole(self, replies: Sequence[Reply]) -> tuple[int, bytes]:
        """(status, body) of the completion; the first that failed fails them all."""
        failed = next((reply.failed for reply in replies if reply.failed is not None), None)
        if failed is not None:
            status, _, body = errors.openai(errors.from_failed(failed), "")
            return status, body
        choices = [
            encoder.choice(reply) for encoder, reply in zip(self._bare, replies, strict=True)
        ]
        return 200, self._bare[0].completion(choices, together([r.usage for r in replies]))


def together(usages: Sequence[Usage]) -> Usage:
    """The prompt is one; what was generated is added up."""
    return Usage(
        input=max(usage.input for usage in usages),
        cached=min(usage.cached for usage in usages),
        output=sum(usage.output for usage in usages),
        reasoning=sum(usage.reasoning for usage in usages),
    )

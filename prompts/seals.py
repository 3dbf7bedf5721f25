"""Seals: a span of reasoning that travels through clients closed, and comes back whole.

Clients drop or downgrade reasoning without a seal, and some send only the seal back. It carries the
raw reasoning, compressed and encrypted (AES-GCM), so that a server that has forgotten everything
can still replay it. A seal that is foreign, spoilt, expired or of a lost key opens to nothing and
harms nothing.
"""

from __future__ import annotations

import os
import zlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from hashlib import blake2b

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from msgspec import Struct
from msgspec.structs import replace

from turns.blocks import Block, Message, Reasoning
from turns.turn import Turn

PREFIX = "treadle2."
_LABEL = b"treadle reasoning"
_KEY_ID, _NONCE, _LARGEST = 4, 12, 4_000_000


class _Sealed(Struct, array_like=True, frozen=True):
    issued: float
    text: str


_decode = msgspec.msgpack.Decoder(_Sealed).decode


class Sealer:
    """Seals with the first secret and opens with any: rotate by putting a new one in front.

    `ttl` in seconds, None for ever. Safe from several threads.
    """

    def __init__(self, secrets: Sequence[str], *, ttl: float | None = None) -> None:
        """ValueError without a secret."""
        if not secrets or not all(secrets):
            msg = "sealing needs at least one secret, and none may be empty"
            raise ValueError(msg)
        keys = [
            blake2b(s.encode(), digest_size=32, person=b"treadle seal").digest() for s in secrets
        ]
        self._ciphers = {_id(key): AESGCM(key) for key in reversed(keys)}
        self._newest = _id(keys[0])
        self._ttl = ttl

    def seal(self, text: str, *, now: float, owner: str = "") -> str:
        """The seal of a span of reasoning; `now` in Unix seconds. Only `owner` can open it."""
        plain = zlib.compress(msgspec.msgpack.encode(_Sealed(now, text)))
        nonce = os.urandom(_NONCE)
        closed = self._ciphers[self._newest].encrypt(nonce, plain, _LABEL + owner.encode())
        return PREFIX + urlsafe_b64encode(self._newest + nonce + closed).decode().rstrip("=")

    def open(self, seal: str, *, now: float, owner: str = "") -> str | None:
        """The reasoning; None for whatever is not a good seal of ours."""
        if not seal.startswith(PREFIX):
            return None
        body = seal.removeprefix(PREFIX)
        try:
            raw = urlsafe_b64decode(body + "=" * (-len(body) % 4))
            key, nonce, closed = raw[:_KEY_ID], raw[_KEY_ID:][:_NONCE], raw[_KEY_ID + _NONCE :]
            plain = self._ciphers[key].decrypt(nonce, closed, _LABEL + owner.encode())
            sealed = _decode(zlib.decompressobj().decompress(plain, _LARGEST))
        except (InvalidTag, KeyError, ValueError, zlib.error, msgspec.DecodeError):
            return None
        expired = self._ttl is not None and now - sealed.issued > self._ttl
        return None if expired else sealed.text


def unsealed(turn: Turn, sealer: Sealer, *, now: float, owner: str = "") -> Turn:
    """The turn with the reasoning in it of which only a seal of ours came back.

    Text that the client did send stands: it may have been altered, and then on purpose.
    """

    def opened(block: Block) -> Block:
        if (
            not isinstance(block, Reasoning)
            or not block.seal
            or (block.text and not block.redacted)
        ):
            return block
        text = sealer.open(block.seal, now=now, owner=owner)
        return block if text is None else Reasoning(text, block.seal)

    def whole(message: Message) -> Message:
        if message.role != "assistant":
            return message
        blocks = tuple(map(opened, message.blocks))
        return message if blocks == message.blocks else replace(message, blocks=blocks)

    return replace(turn, messages=tuple(map(whole, turn.messages)))


def _key(secret: str) -> bytes:
    return blake2b(secret.encode(), digest_size=32, person=b"treadle seal").digest()


def _id(key: bytes) -> bytes:
    return blake2b(key, digest_size=_KEY_ID, person=b"treadle key id").digest()

"""The vocabulary of a `tokenizer.json`: bytes of every id, and which added tokens control."""

from __future__ import annotations

import re
from typing import Any

import msgspec
from msgspec import Struct, field

_HTML = re.compile(
    r"</?(?:b|blockquote|caption|code|em|h[1-6]|i|li|ol|p|pre|strong|sub|sup"
    r"|table|tbody|td|tfoot|th|thead|tr|u|ul)>"
)
_BYTE = re.compile(r"<0x([0-9A-F]{2})>")


class Added(Struct, frozen=True):
    """One entry of `added_tokens`, its flags as the `tokenizers` library means them."""

    id: int
    content: str
    special: bool = False
    lstrip: bool = False
    rstrip: bool = False
    single_word: bool = False
    normalized: bool = False

    def controls(self) -> bool:
        """Whether the token steers the model, by its own looks.

        Vocabularies also add plain text (runs of spaces, HTML elements); these stay text.
        """
        text = self.content
        if self.special:
            return True
        return len(text) > 1 and not text.isspace() and not _HTML.fullmatch(text)


class Document(Struct):
    """What is read of a `tokenizer.json`; its vocabulary is read by the tokenizer library."""

    added_tokens: list[Added] = field(default_factory=list)
    decoder: Any = None
    pre_tokenizer: Any = None

    @classmethod
    def parse(cls, raw: bytes) -> Document:
        return msgspec.json.decode(raw, type=cls)

    @property
    def byte_level(self) -> bool:
        """Whether tokens are spelled in GPT-2's alphabet of bytes."""
        return '"ByteLevel"' in msgspec.json.encode([self.decoder, self.pre_tokenizer]).decode()

    @property
    def opens_once(self) -> bool:
        """Whether only the first piece of a text gets SentencePiece's leading space."""
        return '"prepend_scheme":"first"' in msgspec.json.encode(self.pre_tokenizer).decode()


def _byte_alphabet() -> dict[int, int]:
    """GPT-2's code points to the bytes they stand for, as a translation table to Latin-1."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    table = {byte: byte for byte in printable}
    others = (byte for byte in range(256) if byte not in table)
    return table | {256 + place: byte for place, byte in enumerate(others)}


_ALPHABET = _byte_alphabet()


def _plain_bytes(token: str) -> bytes:
    """A SentencePiece token's bytes: `<0x0A>` is one byte, `\u2581` a space."""
    if found := _BYTE.fullmatch(token):
        return bytes.fromhex(found[1])
    return token.replace("\u2581", " ").encode()


def _alphabet_bytes(token: str) -> bytes:
    try:
        return token.translate(_ALPHABET).encode("latin-1")
    except UnicodeEncodeError:
        return token.encode()


def bytes_of(vocab: dict[str, int], document: Document) -> list[bytes]:
    """The bytes of every id, `b""` where the vocabulary has a gap."""
    spell = _alphabet_bytes if document.byte_level else _plain_bytes
    added = {token.id: token.content.encode() for token in document.added_tokens}
    table = [b""] * (max((*vocab.values(), *added), default=-1) + 1)
    for token, number in vocab.items():
        table[number] = spell(token)
    for number, spelled in added.items():
        table[number] = spelled
    return table

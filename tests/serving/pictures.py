"""Pictures for tests, small ones made on the spot, and requests that show them."""

from __future__ import annotations

import zlib
from base64 import b64encode
from struct import pack
from typing import Any

from tests.serving.asks import ask


def png(width: int, height: int, grey: int = 128) -> bytes:
    """A whole PNG of one shade."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return pack(">I", len(data)) + kind + data + pack(">I", zlib.crc32(kind + data))

    rows = (b"\0" + bytes([grey]) * width) * height
    header = chunk(b"IHDR", pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def base64(data: bytes) -> str:
    return b64encode(data).decode()


def part(api: str, data: str, kind: str = "image/png") -> dict[str, Any]:
    """A picture, in base64, as the API spells one."""
    url = f"data:{kind};base64,{data}"
    match api:
        case "messages":
            source = {"type": "base64", "media_type": kind, "data": data}
            return {"type": "image", "source": source}
        case "chat":
            return {"type": "image_url", "image_url": {"url": url}}
        case _:
            return {"type": "input_image", "image_url": url}


def question(api: str, *pictures: str, text: str = "word " * 60) -> dict[str, Any]:
    """A user's message: the text, then the pictures."""
    said = {"type": "input_text" if api == "responses" else "text", "text": text}
    return {"role": "user", "content": [said, *(part(api, data) for data in pictures)]}


def showing(api: str, *pictures: str, **fields: Any) -> dict[str, Any]:
    """A request of one message with these pictures, each in base64."""
    field = "input" if api == "responses" else "messages"
    return ask(api, **{field: [question(api, *pictures)]}, **fields)

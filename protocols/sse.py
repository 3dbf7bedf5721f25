"""Server-sent events: the framing that all three APIs share.

A frame is one `data:` line of JSON. JSON escapes CR and LF, so a payload never breaks its line;
U+0085, U+2028 and U+2029 are escaped too, because clients that split with `str.splitlines` (httpx's
`iter_lines` among them) would otherwise cut a payload in two.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

END = b"\n\n"
DONE = b"data: [DONE]\n\n"
_encode = msgspec.json.Encoder().encode
_ESCAPE = re.compile(rb"\\(?:u[0-9a-fA-F]{4}|.)", re.DOTALL)  # two backslashes are one escape
_LINES = {b"\\u2028": b"\xe2\x80\xa8", b"\\u2029": b"\xe2\x80\xa9", b"\\u0085": b"\xc2\x85"}


def quote(text: str) -> bytes:
    """`text` as a JSON string, safe inside one line."""
    raw = _encode(text)
    return raw if text.isascii() else _one_line(raw)


def dumps(value: Any) -> bytes:
    """`value` as JSON, safe inside one line."""
    raw = _encode(value)
    return raw if raw.isascii() else _one_line(raw)


def named(name: bytes, data: bytes) -> bytes:
    """One event with an `event:` line."""
    return b"event: " + name + b"\ndata: " + data + END


def data(payload: bytes) -> bytes:
    """One event without a name."""
    return b"data: " + payload + END


def comment(payload: bytes) -> bytes:
    """A line that every client skips."""
    return b": " + payload + END


def verbatim(raw: bytes) -> bytes:
    """JSON of ours as a client would write it again: what was escaped for the line alone is not."""
    if b"\\u2" not in raw and b"\\u0085" not in raw:
        return raw
    return _ESCAPE.sub(lambda found: _LINES.get(found[0], found[0]), raw)


def _one_line(raw: bytes) -> bytes:
    # None of these can stand in JSON outside a string, and UTF-8 never holds one by accident.
    if b"\xe2\x80" in raw:
        raw = raw.replace(b"\xe2\x80\xa8", b"\\u2028").replace(b"\xe2\x80\xa9", b"\\u2029")
    return raw.replace(b"\xc2\x85", b"\\u0085")

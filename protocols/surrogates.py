"""Half characters in a request body, mended.

JavaScript cuts strings between the halves of a UTF-16 pair, and a tool output cut there makes every
later request of its session invalid JSON. Such a half can mean nothing to a model: it becomes
U+FFFD, and the caller reports that it did.
"""

from __future__ import annotations

import re

REPORT = "lone surrogates"
_SUSPECT = re.compile(rb"\\u[dD][89a-fA-F]")
# An escape of any kind, so that the backslash of `\\` never begins one; pairs come first.
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    rb"|(?P<half>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)


def mend(body: bytes) -> bytes:
    """The body with every lone half replaced; the same object where there is none."""
    if _SUSPECT.search(body) is None:
        return body
    found = _ESCAPE.sub(lambda match: rb"\ufffd" if match["half"] else match[0], body)
    return body if found == body else found

"""The audit log: who was refused, and what an admin did. One JSON line each.

A key is named by its id; neither a secret nor anything that a person or a model wrote gets here. A
path is logged without its query.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Any, TextIO

from observe.logs import as_json


class Audit:
    """Writes to `file`, else to `stream`, else to standard output. `clock` gives Unix seconds."""

    def __init__(
        self,
        file: str = "",
        *,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._file = file
        self._stream = stream
        self._clock = clock

    def refused(
        self, *, kind: str, request: str, method: str, path: str, client: str, key: str
    ) -> None:
        """A request was turned away: no key, a bad one, or one that may not."""
        self._say(
            "refused", kind=kind, request=request, method=method, path=path, client=client, key=key
        )

    def changed(self, what: str, *, request: str, client: str, **fields: Any) -> None:
        """An admin changed something: `key_added`, `key_revoked`."""
        self._say(what, request=request, client=client, **fields)

    def _say(self, event: str, **fields: Any) -> None:
        line = as_json({"event": event, "audit": True, "at": self._clock(), **fields}) + "\n"
        if not self._file:
            (self._stream or sys.stdout).write(line)
            return
        # Opened for each line, so that whoever rotates logs may move the file away at any time.
        descriptor = os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, line.encode())
        finally:
            os.close(descriptor)

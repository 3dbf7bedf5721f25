"""The audit log: who was refused, and what an admin did. One JSON line each.

A key is named by its id; neither a secret nor anything that a person or a model wrote gets here. A
path is logged without its query.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

from observe.logs import as_json

log = logging.getLogger(__name__)


class Audit:
    """Writes to `file`, else to `stream`, else to standard output. `clock` gives Unix seconds.
    Raises OSError where `file` cannot be written; one that cannot be any more is no reason to
    refuse a request otherwise, and its lines go to standard output.
    """

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
        if file:
            Path(file).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._append(b"")

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
        if self._file:
            try:
                self._append(line.encode())
            except OSError as error:
                log.warning("the audit file cannot be written (%s); its lines go here", error)
            else:
                return
        (self._stream or sys.stdout).write(line)

    def _append(self, data: bytes) -> None:
        """Opened for each line, so that whoever rotates logs may move the file away at any time."""
        descriptor = os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, data)
        finally:
            os.close(descriptor)

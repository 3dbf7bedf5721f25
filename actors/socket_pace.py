"""The pace of a WebSocket's reader: a turn that is ahead of it waits, as one over HTTP does.

Frames go one by one, each when the socket has taken the last, so what the reader has not taken
stands in the response's log. It is looked at by the clock, not per step.
"""

from __future__ import annotations

import asyncio

from actors.event_log import EventLog
from actors.exchange import BEHIND_FOR
from actors.stream import Brake

LOOK_EVERY = 0.25
"""Seconds between two looks at how far a reader is behind."""

CREDIT = 256 * 2**10
"""Bytes of events that a turn may be ahead of its reader."""


class SocketPace:
    """Of one response. `sent` is how many bytes of the log the socket has taken."""

    def __init__(self, log: EventLog, brake: Brake) -> None:
        self._log = log
        self._brake = brake
        self.sent = 0

    async def lost(self, patience: float = BEHIND_FOR) -> None:
        """Hold the turn whenever its reader is behind; returns when it has not caught up within
        `patience` seconds.
        """
        loop = asyncio.get_running_loop()
        since = 0.0
        while not since or loop.time() - since <= patience:
            await asyncio.sleep(LOOK_EVERY)
            unread = self._log.size - self.sent
            if not since and unread > CREDIT:
                since = loop.time()
                self._brake(True)
            elif since and not unread:
                since = 0.0
                self._brake(False)

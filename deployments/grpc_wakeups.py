"""How a Serve replica's loop is woken when a call or an answer has come: never at the loop's cost.

Serve's calls are gRPC's asyncio ones. There, a thread takes all that comes and writes one byte for
each event to a pair of sockets, so that the loop looks; the loop then takes every event but reads
only one byte. Where its passes are long, because many turns stream, bytes add up until the pair is
full (278 of them), and the thread waits in its write. The kernel lets it go on when three quarters
have been read, at one byte a pass: until then, for seconds, no call and no answer comes through
(docs/decisions/0008-wakeups.md; grpc/grpc#40989 met the same wait at shutdown).
"""

from __future__ import annotations

import gc
import socket
import threading

POLLER = "PollerCompletionQueue"


def never_wait() -> None:
    """Have that thread drop a byte that does not fit: those in the pair wake the loop as well.

    For the start of every deployment: its replica's server has made the pair by then. Does nothing
    where gRPC carries no calls.
    """
    for end in pair():
        end.setblocking(False)


def pair() -> list[socket.socket]:
    """The two ends of this process's pair; [] where there is none."""
    for thread in threading.enumerate():
        poller = getattr(getattr(thread, "_target", None), "__self__", None)
        if type(poller).__name__ == POLLER:  # it is private, and keeps its sockets to itself
            return [one for one in gc.get_referents(poller) if isinstance(one, socket.socket)]
    return []

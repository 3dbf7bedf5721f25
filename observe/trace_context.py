"""The trace that a request belongs to, as its headers say it; around the beginning of its turn.

What happens later to the turn happens in other tasks, so a tap that makes spans takes it up when
the turn is received.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

TRACE = ("traceparent", "tracestate", "baggage")
"""The headers of W3C's trace context, and the keys of MCP's `_meta` that carry the same."""

_carried: ContextVar[Mapping[str, str] | None] = ContextVar("carried", default=None)


def named(headers: Mapping[str, str]) -> dict[str, str]:
    """The trace that these headers name."""
    return {name: headers[name] for name in TRACE if name in headers}


@contextmanager
def carrying(headers: Mapping[str, str]) -> Iterator[None]:
    """Turns that are received inside belong to the trace that these headers name."""
    token = _carried.set(named(headers))
    try:
        yield
    finally:
        _carried.reset(token)


def carried() -> Mapping[str, str]:
    """The trace of the request that is being read; empty where it has none."""
    return _carried.get() or {}

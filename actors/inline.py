"""Inline parsing: an ingress that parses its own turns.

Engine replicas call `take_frames` in the ingress's process (Ray runs a given function on any
actor, off its event loop and one at a time), so the receiver of that process stands here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from actors.messages import Step, decode_step

Receive = Callable[[Step, str], None]

RECEIVERS: list[tuple[asyncio.AbstractEventLoop, Receive]] = []
"""The receivers of this process, each with the loop it belongs to: one ingress, or none."""


def take_frames(_actor: Any, data: bytes, model: str) -> None:
    """Run in an ingress's process: hand one engine step of a model to its receiver."""
    step = decode_step(data)
    for loop, receive in RECEIVERS:
        loop.call_soon_threadsafe(receive, step, model)

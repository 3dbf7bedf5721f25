"""Inline parsing: an ingress that parses its own turns.

Engine replicas call `take_frames` in the ingress's process (Ray runs a given function on any
actor), so the receiver of that process stands here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from actors.messages import Step, decode_step

RECEIVERS: list[Callable[[Step, str], None]] = []
"""The receivers of this process: one ingress, or none."""


def take_frames(_actor: Any, data: bytes, model: str) -> None:
    """Run in an ingress's process: hand one engine step of a model to its receiver."""
    step = decode_step(data)
    for receive in RECEIVERS:
        receive(step, model)

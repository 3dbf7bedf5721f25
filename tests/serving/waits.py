"""Waiting for something that is on its way, with an end to it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


async def until(holds: Callable[[], object], *, within: float = 10.0) -> None:
    """Wait until it holds; TimeoutError after so many seconds."""
    async with asyncio.timeout(within):
        while not holds():  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0.002)

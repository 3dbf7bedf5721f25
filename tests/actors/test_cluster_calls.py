"""What an ingress tells the router of its members: the last word on each, in order, until it is
taken.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from actors import cluster_calls
from actors.cluster_calls import RouterCalls


class Handle:
    """A handle whose methods note what they are told, `slow` until it is set."""

    def __init__(self) -> None:
        self.told: list[tuple[str, list[str]]] = []
        self.slow = asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return Method(lambda *args: self._call(name, *args))

    async def _call(self, name: str, _model: str, replicas: list[str]) -> None:
        await self.slow.wait()
        self.told.append((name, replicas))


class Method:
    def __init__(self, remote: Callable[..., Any]) -> None:
        self.remote = remote


@pytest.fixture
def handle(monkeypatch: pytest.MonkeyPatch) -> Handle:
    monkeypatch.setattr(cluster_calls, "PRESENT_EVERY", 0.01)
    return Handle()


async def test_who_came_and_who_left_is_told_one_after_the_other(handle: Handle) -> None:
    calls = RouterCalls(handle, "i")
    calls.came("m", ["a", "b"])
    for _ in range(5):
        await asyncio.sleep(0)
    calls.left("m", ["a"])
    calls.came("m", ["c"])
    handle.slow.set()
    await calls.settled()
    assert handle.told == [("came", ["a", "b"]), ("left", ["a"]), ("came", ["c"])]


async def test_word_that_was_not_taken_is_told_again(
    handle: Handle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_calls, "MEMBERS_WITHIN", 0.02)
    calls = RouterCalls(handle, "i")
    for _ in range(50):
        calls.left("m", ["gone"])
    calls.came("m", ["a"])
    await asyncio.sleep(0.05)  # longer than one call may take
    assert handle.told == []
    handle.slow.set()
    async with asyncio.timeout(5):
        await calls.settled()
    assert handle.told == [("left", ["gone"]), ("came", ["a"])]

"""What an ingress tells the router: in order where the order matters."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from actors.cluster_calls import RouterCalls


class Handle:
    """A handle whose methods note what they are told, `came` as slowly as the test wants it."""

    def __init__(self) -> None:
        self.told: list[tuple[str, list[str]]] = []
        self.slow = asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return Method(lambda *args: self._call(name, *args))

    async def _call(self, name: str, _model: str, replicas: list[str]) -> None:
        if name == "came":
            await self.slow.wait()
        self.told.append((name, replicas))


class Method:
    def __init__(self, remote: Callable[..., Any]) -> None:
        self.remote = remote


async def test_who_came_and_who_left_is_told_one_after_the_other() -> None:
    handle = Handle()
    calls = RouterCalls(handle, "i")
    calls.came("m", ["a"])
    calls.left("m", ["a"])
    calls.came("m", ["b"])
    for _ in range(5):
        await asyncio.sleep(0)
    assert handle.told == []
    handle.slow.set()
    await calls.settled()
    assert handle.told == [("came", ["a"]), ("left", ["a"]), ("came", ["b"])]

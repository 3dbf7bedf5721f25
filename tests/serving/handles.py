"""Serve handles whose deployments live in this process: `handle.method.remote(...)` is a task.

So the calls of `actors.cluster_calls`, their bytes and their failures are the real ones.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any


class Near:
    """A handle to the one replica of a deployment: `target` has the methods."""

    def __init__(self, target: Any) -> None:
        self._target = target

    def __getattr__(self, name: str) -> Method:
        return Method(lambda: getattr(self._target, name))


class Method:
    """One method of a handle. What it is found by is asked for at each call: targets change."""

    def __init__(self, find: Callable[..., Any]) -> None:
        self._find = find

    def remote(self, *args: Any, **kwargs: Any) -> asyncio.Future[Any]:
        return asyncio.ensure_future(self._find()(*args, **kwargs))


class Engines:
    """A handle to a fleet, with the pinning of `deployments.pinning`: the call says which replica.

    `replicas` by name, as the test keeps them; a call to one that is gone goes to another.
    """

    def __init__(self, replicas: dict[str, Any]) -> None:
        self._replicas = replicas

    def __getattr__(self, name: str) -> Pinned:
        return Pinned(self._replicas, name)


class Pinned:
    """One method of the fleet."""

    def __init__(self, replicas: dict[str, Any], name: str) -> None:
        self._replicas = replicas
        self._name = name

    def remote(self, *args: Any, replica: str) -> asyncio.Future[Any]:
        alive = self._replicas
        if not alive:
            return asyncio.ensure_future(_absent())
        chosen = alive.get(replica) or next(iter(alive.values()))
        found: asyncio.Future[Any] = getattr(chosen, self._name)(*args, replica)
        return found


async def _absent() -> bytes:
    raise ConnectionError("no replica is alive")

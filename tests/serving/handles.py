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

    def options(self, *, method_name: str) -> Engines:
        assert method_name == "lease"
        return self

    @property
    def lease(self) -> Engines:
        return self

    def remote(self, job: bytes, ingress: str, *, replica: str) -> asyncio.Future[bytes]:
        alive = self._replicas
        if not alive:
            return asyncio.ensure_future(_absent())
        chosen = alive.get(replica) or next(iter(alive.values()))
        return chosen.lease(job, ingress, replica)


async def _absent() -> bytes:
    raise ConnectionError("no replica is alive")

"""The store deployment: owns the embedded Valkey, or names the Redis that was configured."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import ray

from deployments.settings import StoreSettings
from sessions.valkey_server import EmbeddedValkey, configured_url

MEMORY = "memory"
EMBEDDED = "embedded"


class StoreDeployment:
    """One replica; ingresses ask it once for the URL and then talk to the store themselves.

    The embedded server listens on a socket file whose place depends on the cluster alone, so that
    a server started again after a death is found where the first one was.
    """

    async def __init__(self, settings: dict[str, Any]) -> None:  # type: ignore[misc] # Serve awaits it
        chosen = StoreSettings.model_validate(settings).redis
        self._server: EmbeddedValkey | None = None
        self._url = configured_url("" if chosen == EMBEDDED else chosen)
        if not self._url:
            self._server = EmbeddedValkey(directory())
            self._url = await asyncio.to_thread(self._server.start)

    async def url(self) -> str:
        """A Redis URL, or "memory": each ingress keeps its own, for tests and one replica."""
        return self._url

    async def check_health(self) -> None:
        if self._server is not None and not self._server.running():
            raise RuntimeError(
                "the embedded Valkey died; this replica is replaced to start another"
            )

    async def __del__(self) -> None:
        server = getattr(self, "_server", None)
        if server is not None:
            await asyncio.to_thread(server.stop)


def directory() -> Path:
    """Where this cluster's Valkey lives: one place a cluster, another for each."""
    cluster = ray.get_runtime_context().gcs_address.replace(":", "-")
    return Path(tempfile.gettempdir()) / f"treadle-store-{cluster}"

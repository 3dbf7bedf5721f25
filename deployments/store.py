"""The store deployment: owns the embedded Valkey, or names the Redis that was configured."""

from __future__ import annotations

import asyncio
import logging
import secrets
import tempfile
from pathlib import Path
from typing import Any

import ray

from deployments.grpc_wakeups import never_wait
from deployments.settings import StoreSettings
from sessions.redis_store import RedisStore
from sessions.secrets import cluster_secret
from sessions.valkey_server import EmbeddedValkey, configured_url
from turns.errors import UnavailableError

log = logging.getLogger(__name__)

LOOK_EVERY = 0.25
"""Seconds between two looks at whether the embedded server lives."""

MEMORY = "memory"
EMBEDDED = "embedded"
PATIENCE = 5.0
"""Seconds that the store has to give or take the secret."""


class StoreDeployment:
    """One replica; ingresses ask it once for the URL and then talk to the store themselves.

    The embedded server listens on a socket file whose place depends on the cluster alone, so that
    a server started again after a death is found where the first one was, with what it had written.
    """

    async def __init__(self, settings: dict[str, Any]) -> None:  # type: ignore[misc] # Serve awaits it
        never_wait()
        chosen = StoreSettings.model_validate(settings).redis
        self._server: EmbeddedValkey | None = None
        self._trouble = ""
        self._secret = secrets.token_hex(32)
        self._url = configured_url("" if chosen == EMBEDDED else chosen)
        if not self._url:
            self._server = server = EmbeddedValkey(directory())
            self._url = await asyncio.to_thread(server.start)
            self._minding = asyncio.ensure_future(self._mind(server))

    async def url(self) -> str:
        """A Redis URL, or "memory": each ingress keeps its own, for tests and one replica."""
        return self._url

    async def secret(self) -> str:
        """What this cluster seals reasoning with where its operator gives no secret.

        One replica makes it for all. A store that cannot be reached must keep nobody from
        starting: then it is a secret of this process, and seals end with it.
        """
        if self._url == MEMORY:
            return self._secret
        store = RedisStore(self._url)
        try:
            async with asyncio.timeout(PATIENCE):
                return await cluster_secret(store)
        except Exception as error:  # noqa: BLE001 - whatever ails the client library
            log.warning("the cluster's seal secret cannot be kept: %r", error)
            return self._secret
        finally:
            await store.close()

    async def check_health(self) -> None:
        """Serve replaces this replica where the server cannot be started again."""
        if self._trouble:
            raise RuntimeError(self._trouble)

    async def _mind(self, server: EmbeddedValkey) -> None:
        """Start the server again whenever it has died: turns go on without it meanwhile."""
        while True:
            await asyncio.sleep(LOOK_EVERY)
            if server.running():
                continue
            log.warning("the embedded Valkey died; starting it again")
            try:
                await asyncio.to_thread(server.stop)
                await asyncio.to_thread(server.start)
            except (OSError, UnavailableError) as error:
                self._trouble = str(error)
                log.warning("the embedded Valkey did not start: %s", error)
            else:
                self._trouble = ""

    async def __del__(self) -> None:
        server = getattr(self, "_server", None)
        if server is not None:
            self._minding.cancel()
            await asyncio.to_thread(server.stop)


def directory() -> Path:
    """Where this cluster's Valkey lives: one place a cluster, another for each."""
    cluster = ray.get_runtime_context().gcs_address.replace(":", "-")
    return Path(tempfile.gettempdir()) / f"treadle-store-{cluster}"

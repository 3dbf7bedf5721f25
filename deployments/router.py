"""The router deployment: one replica, the RouterActor with its clock running."""

from __future__ import annotations

import asyncio
from typing import Any

from actors.router_actor import RouterActor
from deployments.grpc_wakeups import never_wait
from deployments.settings import RouterSettings
from router.router import Settings


class RouterDeployment(RouterActor):
    """Serve calls the actor's own methods; the ticking starts with the replica."""

    async def __init__(self, settings: dict[str, Any]) -> None:  # type: ignore[misc] # Serve awaits it
        never_wait()
        chosen = RouterSettings.model_validate(settings)
        super().__init__(
            Settings(
                policy=chosen.policy,
                queue_limit=chosen.queue_limit,
                queue_patience=chosen.queue_patience_s,
            ),
            preempt=chosen.preempt,
        )
        self._ticking = asyncio.ensure_future(self.tick_forever())

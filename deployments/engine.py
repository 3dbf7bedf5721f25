"""The engine deployment: an EngineReplica with the cluster's parts put in."""

from __future__ import annotations

from typing import Any

import msgspec
from ray import serve

from actors.cluster_calls import RouterReports
from actors.engine_replica import EngineReplica
from actors.engines.registry import make_engine
from actors.lane_pools import ActorLanes, InlineLanes, LanePool
from actors.serving import ModelFolder
from deployments.grpc_wakeups import never_wait
from deployments.model import model_spec
from deployments.settings import ModelSettings


class EngineDeployment:
    """What Serve calls; everything is passed on."""

    async def __init__(self, model: dict[str, Any], parser: str, router: Any) -> None:  # type: ignore[misc] # Serve awaits it
        never_wait()
        settings = ModelSettings.model_validate(model)
        spec = model_spec(settings)
        name = serve.get_replica_context().replica_id.unique_id
        self._router = router
        lanes: LanePool = (
            ActorLanes(spec, name, settings.parsers)
            if parser == "actor"
            else InlineLanes(settings.name)
        )
        self._replica = EngineReplica(
            replica=name,
            model=settings.name,
            engine=make_engine(settings.engine.kind, settings.engine.options, ModelFolder(spec)),
            lanes=lanes,
            reporter=RouterReports(router),
        )
        await self._replica.start()

    async def lease(self, job: bytes, ingress: str, replica: str = "") -> bytes:
        return await self._replica.lease(job, ingress, replica)

    async def held(self, legs: list[str], replica: str = "") -> list[str]:
        """Which of these legs run here. `replica` is for the request router alone."""
        return self._replica.held(legs)

    async def probe(self, replica: str = "") -> dict[str, Any]:
        """Counts for tests and operators: open turns and the engine's own figures.

        `replica` is for the request router alone: which replica is asked.
        """
        stats = msgspec.structs.asdict(self._replica.stats())
        name = self._replica.card.replica
        return {"replica": name, "open_turns": self._replica.open_turns, **stats}

    async def record_autoscaling_stats(self) -> dict[str, float]:
        """What `deployments.scaling` decides by; asked for by Serve every few seconds."""
        stats, card = self._replica.stats(), self._replica.card
        return {
            "turns": stats.running + stats.waiting,
            "kv_used": stats.kv_used,
            "prefill_tokens": stats.prefill_tokens,
            "max_turns": card.max_turns,
            "queued": await self._router.queued.remote(card.model),
        }

    def record_replica_metadata(self) -> dict[str, Any]:
        """Read once by Serve when the replica is ready, and handed to every request router."""
        card: dict[str, Any] = msgspec.to_builtins(self._replica.card)
        return card

    async def check_health(self) -> None:
        await self._replica.check()

    async def __del__(self) -> None:
        """Serve awaits it at the end of a graceful shutdown."""
        if hasattr(self, "_replica"):
            await self._replica.stop()

"""Serve's request router for engine replicas: the call says which replica, this obeys.

The choice itself is the router actor's. A call whose replica is gone or full is refused room here,
it goes to the least loaded of the others, so admission, retries and back-pressure stay Serve's.
Serve copies this module by value into each process: shared state lives in `actors.fleet`.
"""

from __future__ import annotations

from ray.serve.request_router import FIFOMixin, PendingRequest, RequestRouter, RunningReplica

from actors import fleet


class PinningRouter(FIFOMixin, RequestRouter):
    """Ranks the replica named by the keyword argument `replica` first, then all others."""

    async def choose_replicas(
        self,
        candidate_replicas: list[RunningReplica],
        pending_request: PendingRequest | None = None,
    ) -> list[list[RunningReplica]]:
        """One rank with the named replica, one with the rest."""
        if pending_request is None:
            return [candidate_replicas]
        pending_request.routing_context.should_backoff = True  # or it spins while all are full
        wanted = pending_request.kwargs.get("replica")
        pinned = [r for r in candidate_replicas if r.replica_id.unique_id == wanted]
        others = [r for r in candidate_replicas if r.replica_id.unique_id != wanted]
        return [rank for rank in (pinned, others) if rank]

    def update_replicas(self, replicas: list[RunningReplica]) -> None:
        """Serve's membership, the only truth about who exists."""
        super().update_replicas(replicas)
        fleet.changed(
            self._deployment_id.name,
            {r.replica_id.unique_id: dict(r.replica_metadata) for r in replicas},
        )

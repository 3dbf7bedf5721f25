"""Serve's request router for engine replicas: the call says which replica, this obeys.

The choice itself is the router actor's. A call waits for its replica and for no other, as long as
Serve knows that one; where it is gone, whoever gets the call says that it is not meant. What is
found for one call is that call's, as is Serve's default: with its `FIFOMixin` the oldest that waits
would get it, and in a burst calls would change places.
Serve copies this module by value into each process: shared state lives in `actors.fleet`.
"""

from __future__ import annotations

from ray.serve.request_router import PendingRequest, RequestRouter, RunningReplica

from actors import fleet


class PinningRouter(RequestRouter):
    """Obeys the keyword argument `replica` of a call."""

    async def choose_replicas(
        self,
        candidate_replicas: list[RunningReplica],
        pending_request: PendingRequest | None = None,
    ) -> list[list[RunningReplica]]:
        """The named replica; all of them where there is none of that name."""
        if pending_request is None:
            return [candidate_replicas]
        pending_request.routing_context.should_backoff = True  # or it spins while that one is full
        wanted = pending_request.kwargs.get("replica")
        pinned = [r for r in candidate_replicas if r.replica_id.unique_id == wanted]
        return [pinned or candidate_replicas]

    def update_replicas(self, replicas: list[RunningReplica]) -> None:
        """Serve's membership, the only truth about who exists."""
        super().update_replicas(replicas)
        fleet.changed(
            self._deployment_id.name,
            {r.replica_id.unique_id: dict(r.replica_metadata) for r in replicas},
        )

"""Prints as JSON to which replica each of many calls at once was given: [[wanted, given], ...].

A process of its own: Ray's imports stay out of the tests'. One replica's queue is known, the other
must be asked for its own, and answers when all calls wait.
"""

from __future__ import annotations

import asyncio
import json
import sys

from ray.serve._private.common import (
    DeploymentHandleSource,
    DeploymentID,
    ReplicaID,
    RequestMetadata,
)
from ray.serve.request_router import PendingRequest

from deployments.pinning import PinningRouter

DEPLOYMENT = DeploymentID("engine", "app")


class Replica:
    """What Serve's router asks of a replica."""

    max_ongoing_requests = 100
    node_id = availability_zone = ""
    multiplexed_model_ids = frozenset[str]()

    def __init__(self, name: str, answers: asyncio.Event) -> None:
        self.replica_id = ReplicaID(name, DEPLOYMENT)
        self.asked = False
        self.replica_metadata: dict[str, str] = {}
        self.routing_stats: dict[str, float] = {}
        self._answers = answers

    async def get_queue_len(self, *, deadline_s: float) -> int:
        self.asked = True
        await self._answers.wait()
        return 0


async def main() -> None:
    answers = asyncio.Event()
    known, asked = Replica("known", answers), Replica("asked", answers)
    router = PinningRouter(DEPLOYMENT, DeploymentHandleSource.REPLICA, None, None, True)
    router.queue_len_response_deadline_s = 10.0
    router.update_replicas([known, asked])
    router.on_new_queue_len_info(known.replica_id, 0)

    async def call(number: int) -> list[str]:
        wanted = ("asked", "known")[number % 2]
        named = RequestMetadata(request_id=str(number), internal_request_id=str(number))
        pending = PendingRequest(args=[], kwargs={"replica": wanted}, metadata=named)
        given = await router._choose_replica_for_request(pending)
        return [wanted, given.replica_id.unique_id]

    calls = [asyncio.ensure_future(call(number)) for number in range(8)]
    while not (asked.asked and calls[1].done()):  # noqa: ASYNC110 - Serve has no event for it
        await asyncio.sleep(0)
    answers.set()
    sys.stdout.write(json.dumps(await asyncio.wait_for(asyncio.gather(*calls), 30)))


if __name__ == "__main__":
    asyncio.run(main())

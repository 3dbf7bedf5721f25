"""Asking the router: a bounded wait, and nothing that it gave is kept by nobody.

A turn that an ingress places by itself may find nothing of its prompt in the cache, which costs
seconds of prefill: a router that answers is worth a longer wait than one that is lost. The wait is
measured in this loop's own time: what the loop spends on other turns is not counted, since the
answer may be there and not be seen yet. So a burst of turns does not pass for a lost router.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from typing import Any, Protocol

from router.decision import Ask, Choice, Decision, Queued, Refusal

ROUTER_WAIT = 0.100
"""Seconds an ingress waits for the answer of a router that has answered of late."""

LOST_WAIT = 0.010
"""Seconds it waits for one that has not: what a lost router costs each turn."""

LOST_AFTER = 4
"""Questions in a row without any answer, also a late one, after which a router counts as lost."""

SLICE = 0.002
"""Seconds between two looks at the time: the most that one pass of a busy loop counts."""


class RouterClient(Protocol):
    """The router actor as an ingress sees it."""

    def choose(self, model: str, ask: Ask) -> Awaitable[Decision]: ...

    def admitted(self, model: str, turn: str) -> Awaitable[Decision]:
        """The final answer for a turn that was queued."""
        ...

    def gone(self, model: str, turn: str) -> None:
        """Nobody waits for that turn's place any more; never waited for."""
        ...

    def began(self, model: str, choice: Choice, cached: int) -> None:
        """The turn had its first token; `cached` tokens of its prompt were in the cache."""
        ...

    def placed(self, model: str, ask: Ask, choice: Choice) -> None:
        """The ingress has placed a turn by itself: the router counts it as a reservation, in place
        of any that it has made for the turn meanwhile. Never waited for; harmless when it comes
        after its release.
        """
        ...

    def release(self, model: str, choice: Choice) -> None:
        """Release a reservation; batched, never waited for, harmless when repeated."""
        ...

    def left(self, model: str, replicas: Sequence[str]) -> None:
        """These replicas are none that Serve knows; never waited for."""
        ...


class RouterAsking:
    """The questions of one model's turns."""

    def __init__(self, router: RouterClient, model: str) -> None:
        self._router = router
        self._model = model
        self._unanswered = 0

    async def answer(self, ask: Ask) -> Choice | Refusal | None:
        """The router's answer; None when it has no view, does not answer in time or is lost.

        Whatever the router answers once nobody waits for it any more is given back.
        """
        within = ROUTER_WAIT if self._unanswered < LOST_AFTER else LOST_WAIT
        answer = await self._wait(ask, self._router.choose(self._model, ask), within)
        if isinstance(answer, Queued):
            answer = await self._wait(ask, self._router.admitted(self._model, ask.turn), None)
        if answer is None or isinstance(answer, Queued):
            return None
        blind = isinstance(answer, Refusal) and answer.why == "no_replica"
        return None if blind else answer

    async def _wait(
        self, ask: Ask, call: Awaitable[Decision], within: float | None
    ) -> Decision | None:
        asked = asyncio.ensure_future(call)
        try:
            await wait_here(asked, within)
        except asyncio.CancelledError:
            asked.add_done_callback(lambda asked: self._late(ask, asked))
            if within is None:  # it stands in the queue, and its client left
                self._router.gone(self._model, ask.turn)
            raise
        if not asked.done():
            self._unanswered += 1
            asked.add_done_callback(lambda asked: self._late(ask, asked))
            return None
        if asked.cancelled() or asked.exception() is not None:
            return None
        self._unanswered = 0
        return asked.result()

    def _late(self, ask: Ask, asked: asyncio.Future[Decision]) -> None:
        if asked.cancelled() or asked.exception() is not None:
            return
        self._unanswered = 0
        match asked.result():
            case Choice() as choice:
                self._router.release(self._model, choice)
            case Queued():
                self._router.gone(self._model, ask.turn)
            case Refusal():
                pass


async def wait_here(asked: asyncio.Future[Any], within: float | None) -> None:
    """Wait until it is done, `within` seconds of this loop's time at most; None: however long."""
    if within is None:
        await asyncio.wait([asked])
        return
    clock = asyncio.get_running_loop().time
    while not asked.done() and within > 0:
        began = clock()
        await asyncio.wait([asked], timeout=min(SLICE, within))
        within -= min(SLICE, max(clock() - began, SLICE / 10))

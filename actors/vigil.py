"""The vigil: asks after turns of which nothing is heard, so that none waits for a frozen replica.

A replica whose engine makes no step says so itself (`actors.engine_replica`). One whose process is
frozen, or that the network has cut off, says nothing: it is asked, and what does not answer has
lost its turns. A turn that merely waits for its first token costs one question in a while.
"""

from __future__ import annotations

import asyncio
from functools import partial

from actors.conductor import Conductor
from actors.flights import Flight, LeaseCall

LOOK_EVERY = 1.0
"""Seconds between two looks at who is quiet."""

ANSWER_WITHIN = 2.5
"""Seconds in which a replica answers that lives."""


class Vigil:
    """One per ingress."""

    def __init__(self, conductor: Conductor) -> None:
        self._conductor = conductor
        self._asking: dict[tuple[int, str], asyncio.Task[None]] = {}

    async def keep(self) -> None:
        """Look again and again, for ever."""
        while True:
            await asyncio.sleep(LOOK_EVERY)
            self.look()

    def look(self) -> None:
        """Ask the replicas of all quiet turns, each once at a time."""
        since = asyncio.get_running_loop().time() - self._conductor.how.quiet
        quiet: dict[tuple[int, str], list[Flight]] = {}
        for flight in self._conductor.flights():
            if flight.leg and flight.heard < since:
                quiet.setdefault((id(flight.call), flight.replica), []).append(flight)
        for place, flights in quiet.items():
            if place not in self._asking:
                task = asyncio.ensure_future(self._ask(flights[0].call, place[1], flights))
                self._asking[place] = task
                task.add_done_callback(partial(self._asked, place))

    def _asked(self, place: tuple[int, str], _: object) -> None:
        del self._asking[place]

    def _silent(self, call: LeaseCall, replica: str, since: float) -> dict[str, Flight]:
        """The turns of a replica that has not answered, those that were not quiet for long enough
        to be asked about included: to ask once more would double their wait.
        """
        return {
            flight.leg: flight
            for flight in self._conductor.flights()
            if flight.leg
            and (flight.call, flight.replica) == (call, replica)
            and flight.heard < since
        }

    async def _ask(self, call: LeaseCall, replica: str, flights: list[Flight]) -> None:
        legs = {flight.leg: flight for flight in flights}
        held: list[str] = []
        since = asyncio.get_running_loop().time()
        asked = call.held(list(legs), replica)
        try:
            async with asyncio.timeout(ANSWER_WITHIN):
                held = await asked
        except TimeoutError:
            asked.cancel()
            legs |= self._silent(call, replica, since)
        except Exception:  # noqa: BLE001 - whatever came in place of an answer, it is none
            asked.cancel()
        now = asyncio.get_running_loop().time()
        for leg, flight in legs.items():
            if flight.leg != leg:
                continue
            if leg in held:
                flight.heard = now
            else:
                self._conductor.end_leg(flight, "silent")

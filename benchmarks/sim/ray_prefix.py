"""Ray's prefix-affinity router as published with Ray 2.60, as a policy to compare with.

Its tree is the installed one (`ray.llm` PrefixTree); around it stands what the installed
`PrefixCacheAffinityRouter` does with it, which cannot run without Serve: match the prompt as text
(here a character a block); below a match rate of 0.1 take the replica with the least text, else
one that owns the match; of several the one with the shortest queue; and where queues are further
apart than `imbalanced` (published default: never) the better of two at random.
"""

from __future__ import annotations

import random

from router.decision import Why
from router.load import Replica
from router.policy import View


class RayPrefix:
    """A policy; one per run."""

    def __init__(self, imbalanced: float = float("inf"), rate: float = 0.1) -> None:
        from ray.llm._internal.serve.routing_policies.prefix_aware.prefix_tree import (  # noqa: PLC0415 - seconds
            PrefixTree,
        )

        self._tree = PrefixTree()
        self._imbalanced = imbalanced
        self._rate = rate
        self._letters: dict[int, str] = {}
        self._chance = random.Random(1)
        self._known: set[str] = set()
        self._clock = 0

    def __call__(self, view: View) -> tuple[Replica, Why]:
        self._clock += 1
        by_name = {replica.name: replica for replica in view.replicas}
        if new := by_name.keys() - self._known:
            self._tree.add_tenants(sorted(new), self._clock)
            self._known |= new
        text = "".join(map(self._letter, view.ask.hashes)) or "?"
        queues = [replica.active for replica in view.replicas]
        names: list[str] | None = None
        if max(queues) - min(queues) <= self._imbalanced:
            matched, owners = self._tree.prefix_match(text, sorted(by_name))
            smallest = len(matched) / len(text) < self._rate
            names = self._tree.get_smallest_tenants() if smallest else owners
        able = [by_name[name] for name in names or () if name in by_name]
        if not able:
            able = self._chance.sample(list(view.replicas), min(2, len(view.replicas)))
        best = min(able, key=lambda replica: replica.active)
        self._tree.insert(text, best.name, self._clock)
        return best, "overlap"

    def _letter(self, block: int) -> str:
        letter = self._letters.get(block)
        if letter is None:
            at = 0x100 + len(self._letters)
            letter = self._letters[block] = chr(at if at < 0xD800 else at + 0x800)
        return letter

"""Sessions for the simulator: turns as names of blocks, and a generator of agentic ones.

A context is a row of labelled pieces; a block is named by all pieces up to its end, so two
contexts share exactly the blocks that they would share as token ids.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from msgspec import Struct, field
from xxhash import xxh3_64_intdigest

BLOCK = 512
"""Tokens of a block in simulations: what the published traces have."""


class SimTurn(Struct):
    """One turn. `chain` names the whole blocks of its prompt and, behind them, those of its output
    as far as a later turn has them again. `gap` seconds pass between the end of the turn before
    and this one. `known` tokens of the prompt were known when the turn before ended. Sub-agents
    are begun when it ends, and the next turn waits for them.
    """

    chain: list[int]
    tokens: int
    out: int
    gap: float = 0.0
    priority: int = 0
    tier: int = 0
    osl: int | None = None
    known: int = 0
    agents: list[Session] = field(default_factory=list)


class Session(Struct):
    """A conversation; `start` in seconds. Sub-agents start with their parent's turn instead."""

    name: str
    turns: list[SimTurn]
    start: float = 0.0
    tenant: str = ""
    pinned: bool = False


class Context:
    """A growing prompt."""

    def __init__(self, pieces: Sequence[tuple[str, int]] = ()) -> None:
        self.tokens = 0
        self._sign = 0
        self._chain: list[int] = []
        for label, tokens in pieces:
            self.add(label, tokens)

    def add(self, label: str, tokens: int) -> None:
        self._sign = xxh3_64_intdigest(label.encode(), self._sign)
        self.tokens += tokens
        for at in range(len(self._chain), self.tokens // BLOCK):
            self._chain.append(xxh3_64_intdigest(at.to_bytes(4, "little"), self._sign))

    @property
    def chain(self) -> list[int]:
        return list(self._chain)


class Habits(Struct, frozen=True):
    """How agents work. Medians are of log-normal draws; times in seconds, sizes in tokens."""

    heads: int = 4
    head: int = 14_000
    projects: int = 24
    project: int = 6_000
    own: int = 2_000
    turns: int = 24
    out: int = 216
    result: int = 800
    tool_gap: float = 4.0
    user_gap: float = 45.0
    user_share: float = 0.1
    agents: float = 0.08
    compact_at: int = 120_000
    kept_out: float = 1.0
    """Share of an output that the next prompt has again; the rest is reasoning that is dropped."""


def generate(count: int, seed: int, habits: Habits | None = None) -> list[Session]:
    """`count` sessions, all starting at 0; `traces.spread` gives them their starts."""
    chosen = habits or Habits()
    return [_session(f"s{n}", random.Random(f"{seed}/{n}"), chosen, depth=0) for n in range(count)]


def _session(name: str, chance: random.Random, habits: Habits, depth: int) -> Session:
    head = f"head-{chance.randrange(habits.heads)}-{depth}"
    shared = [
        (head, habits.head // (depth + 1)),
        (f"project-{chance.randrange(habits.projects)}", habits.project),
    ]
    context = Context([*shared, (name, _draw(chance, habits.own))])
    turns: list[SimTurn] = []
    known = 0
    for number in range(max(2, _draw(chance, habits.turns // (1 + 2 * depth), 0.5))):
        out = _draw(chance, habits.out, 0.9)
        user = chance.random() < habits.user_share
        turn = SimTurn(
            context.chain,
            context.tokens,
            out,
            _time(chance, habits.user_gap if user else habits.tool_gap) if number else 0.0,
            known=known,
        )
        whole = habits.kept_out >= 1.0
        context.add(f"{name}/{number}/reply", max(1, round(out * habits.kept_out)))
        if whole:
            turn.chain = context.chain
        if not depth and chance.random() < habits.agents:
            many = chance.randint(2, 4)
            turn.agents = [
                _session(f"{name}/{number}.{n}", chance, habits, depth + 1) for n in range(many)
            ]
        known = context.tokens
        turns.append(turn)
        context.add(f"{name}/{number}/result", _draw(chance, habits.result, 1.0))
        if context.tokens > habits.compact_at:
            context = Context([*shared, (f"{name}/{number}/summary", 4000)])
            known = 0
    return Session(name, turns, tenant=f"tenant-{chance.randrange(8)}")


def _draw(chance: random.Random, median: float, width: float = 0.6) -> int:
    return max(1, round(median * chance.lognormvariate(0.0, width)))


def _time(chance: random.Random, median: float) -> float:
    return median * chance.lognormvariate(0.0, 1.0)


def walk(sessions: Sequence[Session]) -> list[Session]:
    """The sessions and all their sub-agents."""
    found: list[Session] = []
    for session in sessions:
        found.append(session)
        for turn in session.turns:
            found += walk(turn.agents)
    return found

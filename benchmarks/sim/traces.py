"""Loads published agentic traces. The data is not ours: `TREADLE_TRACES` says where it lies."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from xxhash import xxh3_64_intdigest

from benchmarks.sim.sessions import BLOCK, Session, SimTurn, walk

ROOT = Path(__file__).resolve().parents[2]
LONGEST = 262_144
"""Tokens of a prompt at most: longer ones of the traces do not fit a simulated engine."""


def folder() -> Path | None:
    """Where the traces lie, None where they do not."""
    path = Path(os.environ.get("TREADLE_TRACES", ROOT.parent / "shared" / "traces"))
    return path if path.is_dir() else None


def weka(path: Path, copies: int = 1) -> list[Session]:
    """Real coding-agent sessions. Their ids are local, so each copy is a session of its own, but
    for its head: tool and system prompts of one size are taken for the same ones.
    """
    sessions = []
    for file in sorted((path / "weka").glob("trace_*.json")):
        trace = json.loads(file.read_text())
        sessions += [_weka_session(trace, f"{trace['id']}.{n}") for n in range(copies)]
    return [session for session in sessions if session.turns]


def _weka_session(trace: dict[str, Any], name: str) -> Session:
    size, head = trace["block_size"], trace["tool_tokens"] + trace["system_tokens"]
    shared = f"head-{trace['tool_tokens']}-{trace['system_tokens']}"
    turns: list[SimTurn] = []
    over = 0.0
    for request in trace["requests"]:
        if request["in"] > LONGEST or not request["out"]:
            continue
        whole = BLOCK // size  # a block of ours is named by the last of theirs in it
        labels = [str(i) for i in request["hash_ids"][whole - 1 :: whole]][: request["in"] // BLOCK]
        chain = _chain(labels, name, shared, head // BLOCK)
        gap = max(0.0, request["t"] - over) if turns else 0.0
        over = request["t"] + request.get("api_time", 0.0)
        turns.append(SimTurn(chain, request["in"], request["out"], min(gap, 300.0)))
    return Session(name, _grown(turns))


def aiperf(path: Path, most: int | None = None) -> list[Session]:
    """Generated coding sessions in Mooncake's form, with layers that sessions share. A session's
    later rows have only what is new in them; the reply before stands in between.
    """
    sessions: dict[str, Session] = {}
    prompts: dict[str, tuple[list[str], int]] = {}
    for row in _rows(path / "aiperf_agentic_1131.jsonl"):
        name = row["session_id"]
        if most and name not in sessions and len(sessions) >= most:
            continue
        labels, tokens = prompts.get(name, ([], 0))
        session = sessions.setdefault(name, Session(name, []))
        if row.get("is_restart"):
            labels, tokens = [], 0
        labels = labels[: tokens // BLOCK] + [str(i) for i in row["hash_ids"]]
        tokens += row["input_length"]
        if tokens > LONGEST:
            continue
        labels = labels[: tokens // BLOCK + 1]
        chain = _chain(labels[: tokens // BLOCK], "", "", 0)
        gap = row.get("delay", 0.0) / 1000 if session.turns else 0.0
        session.turns.append(SimTurn(chain, tokens, row["output_length"], gap))
        tokens += row["output_length"]
        while len(labels) < tokens // BLOCK:
            labels.append(f"{name}/{len(session.turns)}/{len(labels)}")
        prompts[name] = labels, tokens
    for session in sessions.values():
        session.turns = _grown(session.turns)
    return [session for session in sessions.values() if session.turns]


def mooncake(path: Path, name: str = "conversation") -> list[Session]:
    """Single requests with their own times: each is a session of one turn."""
    found = []
    for number, row in enumerate(_rows(path / f"mooncake_{name}_trace.jsonl")):
        chain = _chain([str(i) for i in row["hash_ids"]], "", "", 0)[: row["input_length"] // BLOCK]
        turn = SimTurn(chain, row["input_length"], max(1, row["output_length"]))
        found.append(Session(f"m{number}", [turn], start=row["timestamp"] / 1000))
    return found


def spread(sessions: Sequence[Session], seconds: float, seed: int) -> list[Session]:
    """The same sessions in a random order, starting at random times within `seconds`."""
    chance = random.Random(seed)
    starts = sorted(chance.uniform(0.0, seconds) for _ in sessions)
    mixed = chance.sample(list(sessions), len(sessions))
    for session, start in zip(mixed, starts, strict=True):
        session.start = start
    return mixed


def turns_of(sessions: Sequence[Session]) -> int:
    return sum(len(session.turns) for session in walk(sessions))


def _grown(turns: list[SimTurn]) -> list[SimTurn]:
    """Each turn's chain with the blocks of its output, where the next prompt has them."""
    for before, after in pairwise(turns):
        whole = len(before.chain)
        if after.chain[:whole] == before.chain:
            upto = (before.tokens + before.out) // BLOCK
            before.chain = after.chain[: max(whole, upto)]
            after.known = min(after.tokens, before.tokens + before.out)
    return turns


def _chain(labels: Sequence[str], own: str, shared: str, head: int) -> list[int]:
    chain: list[int] = []
    parent = 0
    for at, label in enumerate(labels):
        said = f"{shared}/{at}" if at < head else f"{own}/{label}"
        parent = xxh3_64_intdigest(said.encode(), parent)
        chain.append(parent)
    return chain


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with path.open() as file:
        for line in file:
            yield json.loads(line)

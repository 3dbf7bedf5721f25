"""The fleet's load as the router knows it, for people to look at."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from actors.engines.engine import EngineStats
from router.load import Replica


class ReplicaLoad(Struct):
    """One engine. `turns` and `prefill` (tokens) are what the router gave it and it has not done;
    `max_turns` and `kv_blocks` are 0 where unknown; `heard` is how many seconds ago it reported.
    What follows is its own word: turns, share of KV in use, tokens since it started.
    """

    replica: str
    turns: int
    prefill: int
    max_turns: int
    block_size: int
    kv_blocks: int
    heard: float
    running: int = 0
    waiting: int = 0
    kv_used: float = 0.0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0


class ModelLoad(Struct):
    """One model: its engines, how many turns wait at the router, and the router's own figures."""

    model: str
    queued: int
    figures: dict[str, int]
    replicas: list[ReplicaLoad]


decode_load = msgspec.msgpack.Decoder(list[ModelLoad]).decode


def replica_load(replica: Replica, stats: EngineStats, heard: float) -> ReplicaLoad:
    info = replica.info
    return ReplicaLoad(
        replica=replica.name,
        turns=replica.active,
        prefill=replica.prefill + replica.foreign_prefill,
        max_turns=info.max_turns,
        block_size=info.block_size,
        kv_blocks=info.kv_blocks,
        heard=round(heard, 2),
        running=stats.running,
        waiting=stats.waiting,
        kv_used=round(stats.kv_used, 4),
        prompt_tokens=stats.prompt_tokens_total,
        cached_tokens=stats.cached_tokens_total,
        output_tokens=stats.output_tokens_total,
    )

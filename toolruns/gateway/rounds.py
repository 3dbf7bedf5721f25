"""Decision rounds: the question, its time limit, and an answer that can always be used."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from toolruns.contract import Contract
from toolruns.decisions import ANSWER_SCHEMA, Decider, Question, question_text, read_answer
from toolruns.rows.handles import Record
from toolruns.rows.store import RowStore
from toolruns.signals import Decided
from toolruns.snapshot import text_of

DECIDE_WITHIN = 10.0


class Rounds:
    """Asks through `decide`. Whatever goes wrong in a round, the stream goes on."""

    def __init__(self, decide: Decider, store: RowStore) -> None:
        self._decide = decide
        self._store = store

    async def ask(
        self, record: Record, contract: Contract, snapshot: dict[str, Any], max_bytes: int
    ) -> Decided:
        began = time.monotonic()
        body = text_of(snapshot, contract.handle_ttl_seconds, max_bytes)
        text = question_text(contract.mode, snapshot, body)
        question = Question(record.call_id, record.owner, record.handle, text, ANSWER_SCHEMA)
        try:
            answer = await asyncio.wait_for(self._decide(question), DECIDE_WITHIN)
        except Exception:  # noqa: BLE001 (the serving path's troubles are not the stream's)
            return Decided("failed", latency=time.monotonic() - began)
        decided = read_answer(answer, time.monotonic() - began)
        if decided.until is None:
            return decided
        past = await asyncio.to_thread(lambda: tuple(self._store.batches(record.handle)))
        return Decided("refine", decided.until, decided.latency, past)

"""From a kept trajectory back to a script: run it again under another predicate or budget.

The rows come from the store, the times from the record: no source is needed.
"""

from __future__ import annotations

from toolruns.contract import Contract
from toolruns.replay import Delivery, Script
from toolruns.rows.store import RowStore, digest
from toolruns.signals import Chunk, Exhausted, Failed, Truncated
from toolruns.trajectory import Entry


class RecordError(ValueError):
    """The record and the rows do not belong together."""


def script_of(store: RowStore, handle: str, contract: Contract) -> Script:
    """The stream as it was recorded. Raises RecordError when rows are missing or were changed."""
    entries = store.events(handle)
    batches = store.batches(handle)
    deliveries: list[Delivery] = []
    before = 0.0
    for entry in entries:
        if entry.type == "chunk.received":
            took = max(0.0, entry.t_ms - before) / 1000
            before = entry.t_ms
            if not entry.data["rows"]:
                continue
            batch = next(batches, None)
            if batch is None or digest(batch) != entry.data.get("digest"):
                message = f"the rows of event {entry.seq} are missing or were changed"
                raise RecordError(message)
            chunk = Chunk(batch, entry.data["bytes"], pages=entry.data["pages"])
            deliveries.append(Delivery(chunk, took))
        elif entry.type == "trajectory.terminated":
            deliveries += _last(entry, max(0.0, entry.t_ms - before) / 1000)
    return Script(contract, deliveries)


def _last(entry: Entry, took: float) -> list[Delivery]:
    """What upstream said last, where it was upstream that ended the run."""
    match entry.data["reason"]:
        case "exhausted":
            return [Delivery(Exhausted(), took)]
        case "upstream_truncated":
            return [Delivery(Truncated("as recorded"), took)]
        case "upstream_error":
            return [Delivery(Failed("as recorded"), took)]
        case _:
            return []

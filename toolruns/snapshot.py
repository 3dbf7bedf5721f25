"""A run at one moment, as JSON, and the text that the model reads of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolruns.endings import ADVICE, Ending, is_complete
from toolruns.synopsis.render import MAX_BYTES, render
from toolruns.synopsis.stream import to_json

if TYPE_CHECKING:
    from toolruns.machine import ToolRun

STATUS = {"new": "running", "running": "running", "yielded": "yielded"}
FAILURES = frozenset({Ending.UPSTREAM_ERROR, Ending.PREDICATE_INVALID})


def snapshot(run: ToolRun, now: float, seq: int) -> dict[str, Any]:
    """The synopsis in its JSON form; `complete` is true only when the source was exhausted."""
    status = STATUS.get(run.state) or _ended(run.ending)
    shown: dict[str, Any] = {
        "handle": run.handle,
        "seq": seq,
        "status": status,
        "reason": str(run.ending) if run.ending else None,
        "complete": is_complete(run.ending),
        "resumable": run.state == "yielded" or (run.contract.resumable and bool(run.cursor)),
        "rows": run.rows,
        "chunks": run.chunks,
        "pages": run.pages if run.contract.mode == "paginated" else None,
        "bytes": run.bytes,
        "elapsed_s": round(run.elapsed(now), 2),
    }
    if run.judge.watch is not None:
        shown["predicate"] = {
            "text": run.judge.until,
            "satisfied": run.judge.satisfied_at is not None,
            "satisfied_at_row": run.judge.satisfied_at,
            "approximate": run.judge.watch.approximate,
        }
    shown["budget"] = run.leg.left(now)
    view = to_json(run.judge.synopsis.view())
    view["notes"] = [*view["notes"], *([run.error] if run.error else [])]
    return {**shown, **view}


def watched(view: dict[str, Any]) -> list[dict[str, Any]]:
    """What the record keeps of a synopsis, so that its curves can be drawn: the watched columns."""
    kept = ("name", "distinct", "min", "max")
    return [
        {name: column[name] for name in kept if name in column}
        for column in view["columns"]
        if column.get("state")
    ]


def _ended(ending: Ending | None) -> str:
    if ending is Ending.EXHAUSTED:
        return "complete"
    return "failed" if ending in FAILURES else "partial"


def headline(view: dict[str, Any]) -> str:
    """The first line: COMPLETE or PARTIAL, why, and how many rows. Never both words."""
    rows = f"{view['rows']:,} row{'' if view['rows'] == 1 else 's'}"
    if view["complete"]:
        return f"COMPLETE: {rows}."
    if view["status"] == "yielded":
        return f"PARTIAL (yielded) after {rows}; the stream is paused, not ended."
    if view["status"] == "running":
        return f"PARTIAL (running) after {rows}; the stream goes on."
    reason = view["reason"]
    advice = ADVICE[Ending(reason)]
    return f"PARTIAL ({reason}) after {rows}; {advice}."


def next_calls(view: dict[str, Any], ttl: float) -> str:
    """The second line: the handle, and what can be done with it."""
    handle = view["handle"]
    minutes = max(1, round(ttl / 60))
    if view["status"] == "yielded":
        return (
            f"handle {handle}: stream_continue(handle, consume_until?) reads on, "
            f"stream_close(handle) ends it, stream_rows(handle) shows rows."
        )
    if not view["rows"]:
        return f"handle {handle}: no rows were kept."
    return (
        f"handle {handle} (kept {minutes} min): stream_rows(handle, where?, limit?) or "
        f"stream_query(handle, sql) over table rows."
    )


def text_of(view: dict[str, Any], ttl: float, max_bytes: int = MAX_BYTES) -> str:
    """The whole result as one text block of at most `max_bytes` bytes."""
    lines = [headline(view), next_calls(view, ttl)]
    if view["status"] == "failed" and view["notes"]:
        lines.append(_bounded(view["notes"][-1], max_bytes // 3))
        view = {**view, "notes": view["notes"][:-1]}
    hidden = {"budget"} if view["complete"] else set()
    shown = {key: value for key, value in view.items() if key not in hidden}
    return render(lines, shown, max_bytes)


def _bounded(text: str, limit: int) -> str:
    return text.encode()[:limit].decode(errors="ignore")

"""`stream_plan`: runs a plan's nodes as their needs are met, and returns a synopsis of each."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pyarrow.compute as pc

from toolruns.gateway.caller import Caller, Report
from toolruns.gateway.calls import Calls, Result
from toolruns.plan import Node, Plan, PlanError, Reference, filled, parse_plan, references
from toolruns.rows.store import RowStore
from toolruns.snapshot import headline, text_of
from turns.errors import InvalidRequestError, TreadleError

TOTAL_BYTES = 6144
LEAST_BYTES = 512


class Plans:
    """Runs plans over the streaming tools of `calls`, under one budget of wall clock a plan."""

    def __init__(self, calls: Calls, store: RowStore) -> None:
        self._calls = calls
        self._store = store

    async def run(self, arguments: dict[str, Any], caller: Caller, report: Report) -> Result:
        """Raises InvalidRequestError before anything is opened if the plan makes no sense."""
        try:
            plan = parse_plan(arguments, frozenset(self._calls.tools))
        except PlanError as error:
            raise InvalidRequestError(str(error), param="nodes") from None
        results = await _Running(plan, self._calls, self._store, caller, report).play()
        return _told(plan, results)


class _Running:
    """One plan at work. A node whose needs failed is skipped, and says so."""

    def __init__(
        self, plan: Plan, calls: Calls, store: RowStore, caller: Caller, report: Report
    ) -> None:
        self._plan = plan
        self._calls = calls
        self._store = store
        self._caller = caller
        self._report = report
        self._until = time.monotonic() + plan.max_seconds
        self._results: dict[str, Result] = {}
        self._told = 0.0

    async def play(self) -> dict[str, Result]:
        tasks: dict[asyncio.Task[Result], str] = {}
        begun: frozenset[str] = frozenset()
        try:
            while len(self._results) < len(self._plan.nodes):
                for node in self._plan.ready(begun, frozenset(self._results)):
                    begun |= {node.id}
                    tasks[asyncio.create_task(self._node(node))] = node.id
                done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    self._results[tasks.pop(task)] = task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        return self._results

    async def _node(self, node: Node) -> Result:
        failed = sorted(n for n in node.needs() if self._results[n].is_error)
        if failed:
            return Result(f"SKIPPED: {failed[0]} failed.", is_error=True)
        try:
            arguments = await asyncio.to_thread(self._arguments, node)
            return await self._calls.stream(node.tool, arguments, self._caller, self._progress)
        except TreadleError as error:
            return Result(f"FAILED: {error.message}", is_error=True)

    def _arguments(self, node: Node) -> dict[str, Any]:
        found = {
            path: self._value(node, reference) for path, reference in references(node.arguments)
        }
        arguments: dict[str, Any] = filled(node.arguments, found)
        seconds = self._plan.seconds(node.id, self._until - time.monotonic())
        name = self._calls.tools[node.tool].spelling("max_seconds")
        asked = arguments.get(name)
        wished = float(asked) if isinstance(asked, int | float) else seconds
        return {**arguments, name: max(0.001, min(wished, seconds))}

    def _value(self, node: Node, reference: Reference) -> Any:
        """What a reference stands for, from the rows that were really kept."""
        table = self._store.table(self._results[reference.source].view["handle"])
        if reference.take == "count":
            return table.num_rows
        if reference.column not in table.schema.names:
            names = ", ".join(table.schema.names[:24]) or "none"
            missing = f"{reference.source} has no column {reference.column!r}"
            message = f"{node.id}: {missing}; columns: {names}"
            raise InvalidRequestError(message, param="nodes")
        column = table.column(reference.column).drop_null()
        if reference.take == "values":
            return column.unique().slice(0, max(1, reference.limit)).to_pylist()
        if reference.take == "first":
            return column[0].as_py() if len(column) else None
        return pc.min_max(column)[reference.take].as_py()

    async def _progress(self, progress: float, message: str) -> None:
        """The nodes' progress as one: their numbers cannot grow together, their count can."""
        self._told = max(self._told + 0.001, float(len(self._results)))
        await self._report(self._told, message)


def _told(plan: Plan, results: dict[str, Result]) -> Result:
    """One text: a line on the whole, then each node's synopsis, in the plan's order."""
    views = [results[node.id].view for node in plan.nodes]
    complete = all(view.get("complete") for view in views)
    share = max(LEAST_BYTES, TOTAL_BYTES // len(plan.nodes))
    word = "COMPLETE" if complete else "PARTIAL"
    lines = [f"{word}: plan of {len(plan.nodes)} calls."]
    for node in plan.nodes:
        result = results[node.id]
        body = text_of(result.view, 900, share) if result.view else result.text[:share]
        lines.append(f"## {node.id} ({node.tool})\n{body}")
    heads = {n.id: headline(results[n.id].view) for n in plan.nodes if results[n.id].view}
    failed = all(results[node.id].is_error for node in plan.nodes)
    return Result("\n".join(lines), failed, {"nodes": heads, "complete": complete})

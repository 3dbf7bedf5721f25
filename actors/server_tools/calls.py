"""The calls of one turn that we make: each is a task, begun the moment its arguments are whole."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from actors.server_tools.allowed import Target
from toolruns.contract import BUDGET_META, SYNOPSES_META
from turns.servers import Served

CALL_META = "callId"


class Answered(Struct, frozen=True):
    """What a call gave back."""

    text: str
    is_error: bool = False


class Running:
    """The calls of one turn. `told` hears the interim result of the call number `index`; where the
    turn is `watched`, our own gateway is asked for whole synopses.

    `most` bounds their number; what is over it is answered without being made. `trace` is the trace
    that they belong to, as `observe.trace_context` names it.
    """

    def __init__(
        self,
        targets: Mapping[str, Target],
        *,
        within: float,
        most: int | None,
        deadline: float | None,
        watched: bool = False,
        trace: Mapping[str, str] | None = None,
    ) -> None:
        self.told: Callable[[int, str], None] = lambda _index, _text: None
        self._targets = targets
        self._within = within
        self._left = most
        self._deadline = None if deadline is None else time.monotonic() + deadline
        self._watched = watched
        self._trace = dict(trace or {})
        self._tasks: dict[int, asyncio.Task[Answered]] = {}

    @property
    def spent(self) -> bool:
        """Whether no further call may be made."""
        return self._left is not None and self._left <= 0

    def begin(self, index: int, tool: Served, call_id: str, arguments: str) -> None:
        """Make the call."""
        allowed = not self.spent
        if self._left is not None:
            self._left -= 1
        work = self._call(index, tool, call_id, arguments) if allowed else _refused()
        self._tasks[index] = asyncio.ensure_future(work)

    def close(self) -> None:
        """Make no further call."""
        self._left = 0

    async def answer(self, index: int) -> Answered:
        """Wait for the answer of a call."""
        return await self._tasks[index]

    async def stop(self) -> None:
        """End what still runs, and wait until its servers were left."""
        running = [task for task in self._tasks.values() if not task.done()]
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running)

    async def _call(self, index: int, tool: Served, call_id: str, arguments: str) -> Answered:
        from actors.server_tools.upstream import (  # noqa: PLC0415 - the extra `tools`
            ServerLostError,
            call_tool,
        )

        target = self._targets[tool.server]
        within = self._seconds()
        try:
            called = await call_tool(
                target,
                tool.name,
                msgspec.json.decode(arguments or "{}"),
                within=within,
                meta=self._meta(target, call_id, within),
                told=lambda text: self.told(index, text),
            )
        except ServerLostError as error:
            return Answered(f"The MCP server '{tool.server}' {error}.", is_error=True)
        return Answered(called.text, called.is_error)

    def _seconds(self) -> float:
        if self._deadline is None:
            return self._within
        return max(0.1, min(self._within, self._deadline - time.monotonic()))

    def _meta(self, target: Target, call_id: str, within: float) -> dict[str, Any]:
        """What only our own gateway is told: which call of which trace this is, and what it may
        take. A harness's trace is no business of a stranger's.
        """
        if not target.own:
            return {}
        running = sum(not task.done() for task in self._tasks.values())
        budget = {"seconds": within, "concurrent": max(1, running)}
        meta = {**self._trace, CALL_META: call_id, BUDGET_META: budget}
        return meta | ({SYNOPSES_META: True} if self._watched else {})


async def _refused() -> Answered:
    return Answered("Not called: the budget of tool calls for this turn is used up.", is_error=True)

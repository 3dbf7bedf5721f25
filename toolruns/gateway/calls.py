"""The calls themselves, free of any protocol: beginning, continuing and ending streams."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Literal

from msgspec import Struct, field

from toolruns.budget import Budget, Purse, grant, purse_from, tighter
from toolruns.contract import BUDGET_META, SYNOPSES_META
from toolruns.decisions import Decider, Pace, Pacing, When
from toolruns.endings import Ending
from toolruns.gateway.arguments import (
    CloseArguments,
    ContinueArguments,
    Ours,
    check,
    predicate,
    read,
)
from toolruns.gateway.caller import Caller, Progress, Report
from toolruns.gateway.drilldown import Drilldown
from toolruns.gateway.profiles import call_id_of, harness_of
from toolruns.gateway.rounds import Rounds
from toolruns.gateway.spans import Spans
from toolruns.machine import ToolRun
from toolruns.predicate.syntax import Predicate
from toolruns.rows.handles import Record
from toolruns.rows.keeper import Keeper
from toolruns.rows.sandbox import Sandbox
from toolruns.rows.store import StoreFullError
from toolruns.runner import LiveRun, Outcome
from toolruns.signals import Continue, Decided, Note
from toolruns.snapshot import FAILURES, text_of
from toolruns.sources.source import SourceError
from toolruns.tool import Tool
from turns.errors import InvalidRequestError, OverloadedError, TreadleError

CONTINUE, CLOSE, SUPERSEDE = "stream_continue", "stream_close", "supersede"
PURSE_WITHIN = 2.0
"""Seconds that the serving path may take to say what a session has left."""

PurseOf = Callable[[str, str], Awaitable[Purse | None]]
"""From tool-call id and principal to what the session that made the call has left."""


Elsewhere = Callable[[Record, str, dict[str, Any], Caller], Awaitable["Result | None"]]
"""Has the gateway that holds a run make a call of it (`Calls.held`). May fail in any way."""


class Settings(Struct, frozen=True):
    """How the gateway behaves. `timeouts` maps patterns of `client/version` to seconds, `pacing`
    says how often a model may be asked.
    """

    decisions: When = "off"
    pacing: Pacing = Pacing()
    most_runs: int = 8
    timeouts: dict[str, float] = field(default_factory=dict)


class Result(Struct):
    """What a call answers: one text, and the record for clients that read `_meta`."""

    text: str
    is_error: bool = False
    view: dict[str, Any] = field(default_factory=dict)


class Live(Struct):
    """A run that this gateway holds: running, or yielded and waiting."""

    run: LiveRun
    record: Record
    tool: Tool
    budget: Budget
    caller: Caller
    busy: bool = True
    following: asyncio.Task[None] | None = None


class Calls:
    """Runs tools for callers. `purse_of` and `decide` come from whoever serves the model."""

    def __init__(
        self,
        tools: list[Tool],
        keeper: Keeper,
        sandbox: Sandbox,
        *,
        settings: Settings | None = None,
        purse_of: PurseOf | None = None,
        decide: Decider | None = None,
        spans: Spans | None = None,
        elsewhere: Elsewhere | None = None,
    ) -> None:
        self._elsewhere = elsewhere
        self._spans = spans
        self.tools = {tool.name: tool for tool in tools}
        ttls = {tool.name: tool.contract.handle_ttl_seconds for tool in tools}
        self.drilldown = Drilldown(keeper, sandbox, ttls)
        self.store = keeper.store
        self._keeper = keeper
        self._settings = settings or Settings()
        self._purse_of = purse_of
        self._rounds = Rounds(decide, keeper.store) if decide else None
        self._live: dict[str, Live] = {}
        self._draining = False

    async def stream(
        self, name: str, arguments: dict[str, Any], caller: Caller, report: Report
    ) -> Result:
        """Call a streaming tool; returns at its end or its yield.

        Raises InvalidRequestError before anything is opened, OverloadedError when too many run.
        """
        tool = self.tools[name]
        own, rest = tool.split(arguments)
        ours = read(rest, Ours)
        until = ours.until()
        check(own, tool.parameters)
        self._admit(caller)
        cursor = await self._cursor(tool, ours, caller)
        await self._supersede(ours, caller)
        budget = await self._budget(tool, ours.wish(), caller)
        live = await self._begin(
            tool,
            own,
            caller,
            cursor=cursor,
            budget=budget,
            until=until,
            checkpoint=ours.checkpoint,
        )
        return await self._leg(live, caller, report)

    async def resume(self, arguments: dict[str, Any], caller: Caller, report: Report) -> Result:
        """`stream_continue`."""
        asked = read(arguments, ContinueArguments)
        until = predicate(asked.consume_until)
        record = await self._keeper.check(asked.handle, caller.principal)
        live = self._live.get(record.handle)
        if live is None:
            if (answer := await self._at_its_holder(record, CONTINUE, arguments, caller)) is None:
                raise InvalidRequestError(_not_held(record), param="handle")
            return answer
        if live.busy or live.run.run.state != "yielded":
            message = "this stream is still running in another call"
            raise InvalidRequestError(message, param="handle")
        live.busy = True
        live.budget = await self._budget(live.tool, asked.wish(), caller)
        past = await self._past(record.handle) if until else ()
        live.run.go_on(Continue(live.budget, until, past, asked.checkpoint))
        return await self._leg(live, caller, report)

    async def close(self, arguments: dict[str, Any], caller: Caller) -> Result:
        """`stream_close`."""
        record = await self._keeper.check(read(arguments, CloseArguments).handle, caller.principal)
        live = self._live.get(record.handle)
        if live is None and (answer := await self._at_its_holder(record, CLOSE, arguments, caller)):
            return answer
        await self._stop(live, Ending.MODEL_STOPPED)
        await self._keeper.close(record)
        return Result(f"closed {record.handle}; its rows are gone.")

    async def held(self, name: str, arguments: dict[str, Any], caller: Caller) -> Result:
        """A call that another gateway hands over, because the run is here."""
        try:
            match name:
                case "stream_continue":
                    return await self.resume(arguments, caller, _unheard)
                case "stream_close":
                    return await self.close(arguments, caller)
                case _:
                    await self._supersede(Ours(supersedes=arguments["handle"]), caller)
                    return Result("superseded")
        except TreadleError as error:
            return Result(error.message, is_error=True)

    async def _at_its_holder(
        self, record: Record, name: str, arguments: dict[str, Any], caller: Caller
    ) -> Result | None:
        """The answer of the gateway that has the run; None where there is none, or it is gone."""
        if self._elsewhere is None or record.status == "ended":
            return None
        if record.holder in ("", self._keeper.holder):
            return None
        try:
            return await self._elsewhere(record, name, arguments, caller)
        except Exception:  # noqa: BLE001 (whatever befell the other one, the run is lost)
            return None

    def open_handles(self) -> list[str]:
        """The handles of streams that run or wait here."""
        return sorted(self._live)

    async def sweep(self) -> None:
        """Drop what expired; a run whose handle expired ends with it."""
        for handle in await self._keeper.sweep():
            live = self._live.get(handle)
            if live is not None:
                live.run.stop(Ending.HANDLE_CLOSED, "the handle expired")

    async def drain(self) -> None:
        """Begin nothing new, end every run, and wait until their sources are closed."""
        self._draining = True
        held = list(self._live.values())
        await asyncio.gather(*(self._stop(live, Ending.SERVER_DRAINING) for live in held))
        await self.drilldown.close()

    async def _stop(self, live: Live | None, ending: Ending) -> None:
        """End a run and wait until nothing of it is left."""
        if live is not None:
            live.run.stop(ending)
            if live.following is not None:
                await asyncio.shield(live.following)

    def _admit(self, caller: Caller) -> None:
        if self._draining:
            message = "this server is going away; call again"
            raise OverloadedError(message)
        mine = [x for x in self._live.values() if x.record.owner == caller.principal]
        if len(mine) >= self._settings.most_runs:
            message = f"{len(mine)} streams of yours are open; close one with stream_close"
            raise OverloadedError(message)

    async def _cursor(self, tool: Tool, ours: Ours, caller: Caller) -> str:
        """Where an earlier call of the same tool stopped."""
        if ours.resume_from is None:
            return ""
        record = await self._keeper.check(ours.resume_from, caller.principal)
        if record.tool != tool.name or not record.cursor:
            message = "that call left no place to go on from"
            raise InvalidRequestError(message, param="resume_from")
        return record.cursor

    async def _supersede(self, ours: Ours, caller: Caller) -> None:
        if ours.supersedes is None:
            return
        record = await self._keeper.check(ours.supersedes, caller.principal)
        live = self._live.get(record.handle)
        if live is None:
            await self._at_its_holder(record, SUPERSEDE, {"handle": record.handle}, caller)
        await self._stop(live, Ending.MODEL_REFINED)

    async def _budget(self, tool: Tool, wish: Any, caller: Caller) -> Budget:
        call_id = call_id_of(caller.meta)
        purse = purse_from(caller.meta.get(BUDGET_META))
        if call_id and self._purse_of is not None:
            purse = tighter(purse, await self._inherited(call_id, caller.principal))
        harness = harness_of(caller.client, self._settings.timeouts)
        return grant(tool.contract.defaults, wish=wish, harness=harness, purse=purse)

    async def _inherited(self, call_id: str, principal: str) -> Purse | None:
        """What the session has left; a server that cannot say it bounds nothing."""
        if self._purse_of is None:
            return None
        try:
            return await asyncio.wait_for(self._purse_of(call_id, principal), PURSE_WITHIN)
        except Exception:  # noqa: BLE001 (the serving path's troubles are not the tool's)
            return None

    async def _begin(
        self,
        tool: Tool,
        own: dict[str, Any],
        caller: Caller,
        *,
        cursor: str,
        budget: Budget,
        until: Predicate | None,
        checkpoint: bool,
    ) -> Live:
        try:
            source = tool.open(own, cursor)
            record = await self._keeper.create(
                caller.principal,
                tool.name,
                tool.contract.handle_ttl_seconds,
                call_id=call_id_of(caller.meta),
                arguments=own,
            )
        except SourceError as error:
            raise InvalidRequestError(str(error)) from None
        except StoreFullError as error:
            raise OverloadedError(str(error)) from None
        when = self._settings.decisions if self._rounds and record.call_id else "off"
        run = ToolRun(
            record.handle,
            tool.contract,
            budget,
            until=until,
            checkpoint=checkpoint,
            pace=Pace(when, self._settings.pacing),
        )
        live = LiveRun(
            run,
            source,
            writer=self.store.writer(record.handle),
            ask=lambda snapshot: self._ask(held, snapshot),
        )
        held = Live(live, record, tool, budget, caller)
        self._live[record.handle] = held
        live.start()
        held.following = asyncio.create_task(self._follow(held))
        return held

    async def _leg(self, live: Live, caller: Caller, report: Report) -> Result:
        """Wait for the end of a leg, reporting; a caller that leaves ends the run."""
        progress = Progress(report, whole=bool(caller.meta.get(SYNOPSES_META)))
        live.run.watch(progress)
        reporting = asyncio.create_task(progress.run())
        try:
            outcome = await live.run.outcome()
        except asyncio.CancelledError:
            left = Ending.CANCELLED if caller.modern else Ending.CLIENT_DISCONNECTED
            live.run.stop(left)
            raise
        finally:
            reporting.cancel()
        return await self._result(live, outcome)

    async def _result(self, live: Live, outcome: Outcome) -> Result:
        if outcome.ending is None:
            await self._settle(live, outcome.snapshot, "yielded")
        elif live.following is not None:
            await asyncio.shield(live.following)
        live.busy = False
        text = text_of(
            outcome.snapshot, live.tool.contract.handle_ttl_seconds, live.budget.synopsis_bytes
        )
        await self.drilldown.note(
            live.record, Note("result.returned", {"bytes": len(text.encode())})
        )
        failed = outcome.ending in FAILURES and not outcome.snapshot["rows"]
        return Result(text, failed, outcome.snapshot)

    async def _settle(
        self, live: Live, snapshot: dict[str, Any], status: Literal["yielded", "ended"]
    ) -> None:
        record = live.record
        record.status = status
        record.rows, record.bytes = snapshot["rows"], live.run.kept_bytes
        record.cursor = live.run.run.cursor
        record.snapshot = {**snapshot, "head": [], "sample": [], "columns": []}
        await self._keeper.update(record)

    async def _follow(self, live: Live) -> None:
        """See a run to its end, whether or not anybody still waits for it."""
        await live.run.ended()
        self._live.pop(live.record.handle, None)
        if live.run.final is not None:
            await self._settle(live, live.run.final.snapshot, "ended")
        if self._spans is not None:
            entries = await asyncio.to_thread(self.store.events, live.record.handle)
            self._spans.ended(live.record, entries, live.caller)

    async def _ask(self, live: Live, snapshot: dict[str, Any]) -> Decided:
        if self._rounds is None:
            return Decided("failed")
        limit = live.budget.synopsis_bytes
        return await self._rounds.ask(live.record, live.tool.contract, snapshot, limit)

    async def _past(self, handle: str) -> tuple[Any, ...]:
        return tuple(await asyncio.to_thread(lambda: list(self.store.batches(handle))))


async def _unheard(_progress: float, _message: str) -> None:
    """Nobody here hears the progress of a call that was handed over."""


def _not_held(record: Record) -> str:
    if record.status == "ended":
        reason = record.snapshot.get("reason", "")
        return f"this stream has ended ({reason}); its rows are still readable, call the tool again"
    return "this stream is held by another server, which no longer has it; call the tool again"

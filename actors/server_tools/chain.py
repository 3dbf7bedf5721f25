"""The chain: model step, calls, their results, the next model step, until the model has answered.

A call begins the moment it is complete, while the model may still write. The chain ends cleanly
however it ends: with the model's answer, with calls that the client must make or consent to, with
the step budget (Messages pauses the turn; else the model is asked once more, without tools), or
with an error in the API's own shape.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from actors.exchange import Exchange
from actors.flights import Flight
from actors.server_tools.calls import Answered, Running
from actors.server_tools.listings import LISTED
from actors.server_tools.step import StepExchange
from protocols import ids, tool_servers
from turns.blocks import Message, Reasoning, Text, ToolCall, ToolResult
from turns.errors import OverloadedError, TreadleError
from turns.events import (
    Event,
    Stop,
    ToolCallAnswered,
    ToolCallProgressed,
    ToolCallReady,
    ToolCallStarted,
    ToolsListed,
    TurnEnded,
    TurnFailed,
    TurnStarted,
    Usage,
)
from turns.reply import CutCall, Reply
from turns.turn import ToolChoice, Turn

Begin = Callable[[Turn, Exchange, int], Awaitable[Flight]]
"""Puts one step into the air; its size in bytes as in `Ingress.begin`."""
Noted = Callable[[Turn, Reply, int], None]
"""Hears of the calls that a step made, by the ids that their servers are told."""


class Parts(Struct):
    """What a chain needs of its ingress."""

    begin: Begin
    leave: Callable[[Flight], None]
    within: Callable[[Flight, Flight], None]
    defect: Callable[[str, Exception], None]
    noted: Noted
    most_steps: int


class Chain:
    """One turn with server tools. `flight` is what its client holds of it."""

    def __init__(
        self, turn: Turn, size: int, exchange: Exchange, parts: Parts, running: Running
    ) -> None:
        self.flight: Flight | None = None
        self._turn = turn
        self._size = size
        self._exchange = exchange
        self._parts = parts
        self._running = running
        self._served = tool_servers.served(turn)
        self._messages = turn.messages
        self._usage = Usage()
        self._begun = False
        self._calls = 0
        self._over = False

    async def run(self) -> None:
        """To the turn's one end."""
        try:
            await self._consented()
            await self._steps()
        except TreadleError as error:
            self._fail(error)
        except Exception as error:  # noqa: BLE001 - the turn must end, whatever broke
            self._parts.defect(self._turn.id, error)
            self._fail(TreadleError("something went wrong inside the server"))
        finally:
            self._over = True
            await self._running.stop()

    def told(self, index: int, synopsis: str) -> None:
        """An interim result of the call number `index`."""
        if self._begun and not self._over:
            self._exchange.take([ToolCallProgressed(index, synopsis)])

    async def _steps(self) -> None:
        steps = self._parts.most_steps
        for number in range(steps + 1):
            last = number == steps or self._running.spent
            if last and self._turn.api == "messages" and number == steps:
                self._end("paused")
                return
            stop = await self._step(number, last=last)
            if stop is not None:
                self._end(stop)
                return

    async def _step(self, number: int, *, last: bool) -> Stop | None:
        """One model step and the calls it made; None where another step has to follow."""
        left = self._left()
        if left is not None and left <= 0:
            return "length"
        turn = self._as_step(number, left, last=last)
        if last:
            self._running.close()
        begun: dict[int, ToolCallStarted] = {}
        exchange = StepExchange(
            self._exchange.take,
            self._began,
            lambda call, arguments: self._ready(begun, call, arguments),
            calls=self._calls,
        )
        flight = await self._parts.begin(turn, exchange, self._size)
        if self.flight is not None:
            self._parts.within(self.flight, flight)
        try:
            reply = await exchange.land()
        finally:
            self._parts.leave(flight)
        if reply.failed is not None:
            if self.flight is not None:
                self.flight.retry_after = flight.retry_after
            raise failed(reply.failed)
        first, self._calls = self._calls, exchange.taken
        self._usage = added(self._usage, reply.usage)
        reply = self._named(reply, first)
        self._parts.noted(turn, reply, self._size)
        answers = await self._answers(begun)
        if last or not answers or self._pending(reply, answers):
            return reply.stop or "cancelled"
        self._go_on(reply, answers)
        return None

    def _began(self, event: TurnStarted) -> list[Event]:
        """The beginning of the whole turn: what its servers offer stands first."""
        if self._begun:
            return []
        self._begun = True
        news = self._turn.echo.get(LISTED) or []
        return [event, *(ToolsListed(server, tools) for server, tools in news)]

    def _ready(
        self, begun: dict[int, ToolCallStarted], call: ToolCallStarted, arguments: str
    ) -> None:
        tool = self._served.get(call.name)
        if tool is not None and not tool.ask:
            begun[call.index] = call
            self._running.begin(call.index, tool, self._id(call.id, call.index), arguments)

    async def _answers(self, begun: dict[int, ToolCallStarted]) -> dict[int, Answered]:
        """The answers in the order of their calls, each shown when it is its turn."""
        answers: dict[int, Answered] = {}
        for index in begun:
            answers[index] = found = await self._running.answer(index)
            self._exchange.take([ToolCallAnswered(index, found.text, found.is_error)])
        return answers

    def _pending(self, reply: Reply, answers: dict[int, Answered]) -> bool:
        """Whether the client must act before the model can go on, or the reply was cut."""
        if reply.stop not in ("end", "tool_use"):
            return True
        calls = sum(isinstance(block, ToolCall | CutCall) for block in reply.blocks)
        return calls > len(answers)

    def _go_on(self, reply: Reply, answers: dict[int, Answered]) -> None:
        said = tuple(b for b in reply.blocks if isinstance(b, Text | Reasoning | ToolCall))
        calls = [block for block in said if isinstance(block, ToolCall)]
        results = [
            Message("tool", (result(call, found),))
            for call, found in zip(calls, answers.values(), strict=True)
        ]
        self._messages = (*self._messages, Message("assistant", said), *results)
        self._size += sum(len(found.text) for found in answers.values())

    def _named(self, reply: Reply, first: int) -> Reply:
        """The reply, its calls under the ids that their servers and the client know."""
        blocks = list(reply.blocks)
        index = first
        for at, block in enumerate(blocks):
            if isinstance(block, ToolCall):
                blocks[at] = replace(block, id=self._id(block.id, index))
            index += isinstance(block, ToolCall | CutCall)
        return replace(reply, blocks=tuple(blocks))

    def _id(self, call_id: str, index: int) -> str:
        spell = ids.tool_use if self._turn.api == "messages" else ids.call
        return spell(call_id, self._turn.id, index)

    def _as_step(self, number: int, left: int | None, *, last: bool) -> Turn:
        turn = self._turn
        choice = turn.tool_choice
        if last:
            choice = ToolChoice("none")
        elif number:
            choice = ToolChoice(parallel=choice.parallel)
        return replace(
            turn,
            id=f"{turn.id}-{number}",
            messages=self._messages,
            tool_choice=choice,
            sampling=replace(turn.sampling, max_tokens=left),
            servers=(),
            approved=(),
            store=False,
            previous="",
        )

    def _left(self) -> int | None:
        """Tokens that may still be generated."""
        most = self._turn.sampling.max_tokens
        return None if most is None else most - self._usage.output

    async def _consented(self) -> None:
        """Make the calls that an earlier turn had to ask about and the client allowed."""
        calls = [
            block
            for message in self._turn.messages
            for block in message.blocks
            if isinstance(block, ToolCall) and block.id in self._turn.approved
        ]
        if not calls:
            return
        self._exchange.take(self._began(TurnStarted(0)))
        begun: list[tuple[ToolCallStarted, ToolCall]] = []
        for call in calls:
            tool = self._served.get(call.name)
            if tool is None:
                continue
            started = ToolCallStarted(self._calls, call.id, call.name)
            self._calls += 1
            self._exchange.take([started, ToolCallReady(started.index, call.arguments)])
            self._running.begin(started.index, tool, call.id, call.arguments)
            begun.append((started, call))
        found = await self._answers({started.index: started for started, _ in begun})
        for (_, call), answer in zip(begun, found.values(), strict=True):
            self._messages = tool_servers.answered(self._messages, result(call, answer))
            self._size += len(answer.text)

    def _end(self, stop: Stop) -> None:
        self._finish([TurnEnded(stop, self._usage)])

    def _fail(self, error: TreadleError) -> None:
        if isinstance(error, OverloadedError) and self.flight is not None:
            self.flight.retry_after = error.retry_after
        self._finish([TurnFailed(error.kind, error.message)])

    def _finish(self, events: Sequence[Event]) -> None:
        if not self._over:
            self._over = True
            self._exchange.take(list(events))


def result(call: ToolCall, answer: Answered) -> ToolResult:
    """An answer as the model reads it."""
    content = (Text(answer.text),) if answer.text else ()
    return ToolResult(call.id, content, is_error=answer.is_error, name=call.name)


def added(one: Usage, other: Usage) -> Usage:
    """What both took; the steps of a turn are paid for one by one."""
    return Usage(
        one.input + other.input,
        one.cached + other.cached,
        one.output + other.output,
        one.reasoning + other.reasoning,
    )


def failed(event: TurnFailed) -> TreadleError:
    """A step's failure as an error, its kind kept."""
    error = TreadleError(event.message)
    error.kind = event.kind
    return error

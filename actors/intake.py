"""The intake: from a request's bytes to a turn in the air, the same for every way in.

HTTP, a WebSocket frame, a background response and a compaction all begin their turns here.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from access.keys import Allowance
from access.urgency import held
from actors.allowances import Allowances
from actors.attachments.pdf import PdfLimits, PdfReader
from actors.attachments.resolve import Attachments
from actors.exchange import Exchange
from actors.flights import Flight
from actors.ingress import Ingress
from actors.model_service import ModelService
from actors.open_calls import OpenCalls
from actors.reception import Asked
from actors.response_store import Earlier, ResponseStore
from actors.server_tools.serving import ServerTools, ours
from actors.turn_notes import TurnNotes
from actors.unseen import header, unseen
from observe.taps import Taps
from observe.trace_context import carrying
from prompts.prompter import PromptSettings
from protocols.protocol import Encoder, Protocol
from protocols.registry import APIS
from protocols.responses import stored
from protocols.responses.api import Responses
from protocols.seals import Seal
from turns.errors import TreadleError
from turns.reply import Reply
from turns.turn import Api, Turn

HARNESS = 80
"""Characters of a user agent that are noted."""

LARGE = 65_536
"""Bytes that a file's text may have: rendering it is not for the event loop."""

RESPONSES = Responses()


class Read(Struct):
    """A request that was read: its turn, and what of the store it goes on from.

    `size` is what there is to render, in bytes of JSON; `created` in Unix seconds; `ignored` what
    of it nobody acts on.
    """

    asked: Asked
    api: Protocol
    turn: Turn
    created: int
    earlier: Earlier
    size: int
    seal: Seal | None = None
    ignored: Sequence[str] = ()

    def encoder(self) -> Encoder:
        """A new encoder of the turn; the model is called as the client called it."""
        turn = self.turn
        return self.api.encoder(turn, created=self.created, model=turn.model, seal=self.seal)

    def kept(self, reply: Reply | None) -> bytes:
        """The response as it is stored."""
        turn = self.turn
        return RESPONSES.kept(turn, reply, created=self.created, model=turn.model, seal=self.seal)


def told(turn: Turn, settings: PromptSettings) -> Turn:
    """The turn, hiding reasoning from a client that did not ask for it where that is set."""
    if settings.unasked_thinking or turn.api != "messages" or turn.thinking.mode != "default":
        return turn
    return replace(turn, thinking=replace(turn.thinking, hidden=True))


def unhurried(turn: Turn, allowed: Allowance) -> Turn:
    """The turn, no more urgent than its key may be; a hint beyond that is named as ignored."""
    hints, ignored = held(turn.hints, allowed)
    if hints is turn.hints:
        return turn
    names = [*turn.echo.get("ignored", ()), *(f"agent_hints.{name}" for name in ignored)]
    return replace(turn, hints=hints, echo={**turn.echo, "ignored": names})


Decode = Callable[..., Turn]
Known = Mapping[str, Earlier]
"""What a connection remembers of its own responses, by id."""


class Intake:
    """One per ingress."""

    def __init__(
        self,
        ingress: Ingress,
        responses: ResponseStore,
        calls: OpenCalls | None = None,
        attachments: Attachments | None = None,
        tools: ServerTools | None = None,
        *,
        notes: TurnNotes,
    ) -> None:
        self.ingress = ingress
        self._attachments = attachments or Attachments(PdfReader(PdfLimits()))
        self._calls = calls
        self._tools = tools
        self.responses = responses
        self.notes = notes
        self.allowances = Allowances()
        ingress.taps = Taps(ingress.taps, self.allowances)
        self._keeping: set[asyncio.Task[None]] = set()

    async def read(
        self, name: Api, asked: Asked, *, turn_id: str, known: Known | None = None
    ) -> Read:
        """Decode, with the turns before it in front. Raises TreadleError; such a request is told
        to the taps as refused, for it never becomes a turn. `known` need not be asked of the store.
        """
        api = APIS[name]
        began = time.perf_counter()
        try:
            turn, earlier, size = await self.turn(api.decode, asked, turn_id, known)
            model = self.ingress.names.model(turn.model)
            spec = permitted(asked, model, turn.model).spec
            turn = told(turn, spec.prompt)
        except TreadleError as error:
            self.ingress.refused(name, asked.id, error)
            raise
        if spec.dispatch and not turn.echo.get("dispatch"):
            turn.echo["dispatch"] = spec.dispatch
        self.ingress.decoded(turn, time.perf_counter() - began)
        # Whose it is comes first: a client can part its own prompts, never reach another tenant's.
        turn = replace(turn, salt=asked.caller.salt + (turn.salt and f"/{turn.salt}"))
        turn = unhurried(turn, asked.caller.allowance)
        seal = self.ingress.replay.seals(asked.owner)
        ignored = unseen(turn)
        return Read(asked, api, turn, int(time.time()), earlier, size, seal, ignored)

    async def turn(
        self, decode: Decode, asked: Asked, turn_id: str, known: Known | None = None
    ) -> tuple[Turn, Earlier, int]:
        """A request as a turn, what it goes on from, and the bytes of both."""
        turn, earlier, size = await self._whole(decode, asked, turn_id, known)
        resolved = await self._attachments.resolved(turn)
        return resolved, earlier, size if resolved is turn else size + LARGE

    async def _whole(
        self, decode: Decode, asked: Asked, turn_id: str, known: Known | None
    ) -> tuple[Turn, Earlier, int]:
        body = asked.body
        turn = decode(body, asked.headers, turn_id=turn_id)
        if turn.api != "responses":
            return await self._equipped(turn, asked), Earlier(), len(body)
        earlier = (known or {}).get(turn.previous)
        if earlier is None:
            earlier = await self.responses.earlier(turn, asked.owner)
        if earlier.found:
            body = stored.continued(body, earlier.items, turn_id)
            turn = decode(body, asked.headers, turn_id=turn_id)
            if not turn.model:
                turn = replace(turn, model=earlier.model)
        return await self._equipped(turn, asked), earlier, len(body)

    async def _equipped(self, turn: Turn, asked: Asked) -> Turn:
        """The turn with its servers' tools, or without its servers where none may be named."""
        if not turn.servers:
            return turn
        if self._tools is not None:
            return await self._tools.equipped(turn, asked.keyed)
        ignored = [*turn.echo.get("ignored", ()), *(f"{one.where}:mcp" for one in turn.servers)]
        return replace(turn, servers=(), echo={**turn.echo, "ignored": ignored})

    async def begin(self, read: Read, exchange: Exchange) -> Flight:
        """Put the turn in the air; its events come to `exchange`. Raises TreadleError."""
        turn, asked = read.turn, read.asked
        exchange.ended.add_done_callback(self.notes.noting(turn, asked, exchange))
        if turn.store:
            exchange.landing = lambda reply: self._landed(read, reply)
        if self._tools is not None and ours(turn):
            return self._tools.begin(
                turn,
                exchange,
                lambda step, sink, size: self._begun(read, step, sink, size),
                asked=asked,
                size=read.size,
            )
        if (calls := self._calls) is not None and turn.tools:
            exchange.ended.add_done_callback(
                lambda _: calls.note(asked.owner, turn, exchange.fold.reply(), read.size)
            )
        return await self._begun(read, turn, exchange, read.size)

    async def _begun(self, read: Read, turn: Turn, exchange: Exchange, size: int) -> Flight:
        """One turn in the air: the read one, or a step of it."""
        asked = read.asked
        self.allowances.enter(asked.caller, turn.id)
        try:
            with carrying(asked.headers):
                return await self.ingress.begin(
                    turn,
                    exchange,
                    size=size,
                    owner=asked.owner,
                    request=asked.id,
                    harness=asked.headers.get("user-agent", "")[:HARNESS],
                    ignored=read.ignored,
                    allowed=asked.caller.allowance,
                )
        except BaseException:
            self.allowances.leave(turn.id)
            raise

    def _landed(self, read: Read, reply: Reply) -> Awaitable[None]:
        """What was begun to be kept is kept, even when the client leaves in the meantime."""
        task = asyncio.ensure_future(self._keep(read, reply))
        self._keeping.add(task)
        task.add_done_callback(self._keeping.discard)
        return asyncio.shield(task)

    async def _keep(self, read: Read, reply: Reply) -> None:
        try:
            await self.keep(read, read.kept(reply))
        except Exception as error:  # noqa: BLE001 - the client must hear that its turn is over
            self.ingress.defect(read.turn.id, error)

    async def keep(self, read: Read, body: bytes) -> None:
        """Keep the turn's response as `body` says it now is."""
        asked = read.asked
        await self.responses.keep(
            asked.owner, read.turn, sent=asked.body, body=body, earlier=read.earlier
        )

    def headers(self, read: Read) -> dict[str, str]:
        """What the response says beside its body."""
        found = header(read.ignored)
        if read.turn.api == "responses":
            found["x-models-etag"] = self.ingress.names.etag()
        return found


def permitted(asked: Asked, model: ModelService, name: str) -> ModelService:
    """The model that was asked for by `name`, if the caller may use it. Raises ForbiddenError."""
    asked.caller.need_model(name or model.spec.name, model.spec.name)
    return model

"""Stored responses over HTTP: fetched, followed, listed, cancelled, deleted, summed up."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator

import msgspec
from fastapi import APIRouter, Request, Response
from starlette.responses import StreamingResponse

from actors.background import Background
from actors.event_log import EventLog
from actors.exchange import SSE_HEADERS, WholeExchange, failure
from actors.intake import Intake
from actors.page_requests import answer, asked, asked_with_body
from protocols.bodies import invalid
from protocols.responses import stored
from turns.errors import InvalidRequestError

items_of = msgspec.json.Decoder(list[msgspec.Raw]).decode


def response_pages(intake: Intake, background: Background) -> APIRouter:
    router = APIRouter(prefix="/v1/responses")

    @router.post("/compact")
    async def compact(request: Request) -> Response:
        return await _compact(intake, request)

    @router.get("/{response_id}")
    async def fetch(response_id: str, request: Request) -> Response:
        owner = asked(request).owner
        if request.query_params.get("stream") == "true":
            after = _number(request.query_params.get("starting_after"))
            log = await _log(background, owner, response_id)
            events = follow(log, after + 1, intake.ingress.keepalive_s)
            return StreamingResponse(events, headers=SSE_HEADERS)
        return answer((await background.get(owner, response_id)).body)

    @router.delete("/{response_id}")
    async def delete(response_id: str, request: Request) -> Response:
        await background.delete(asked(request).owner, response_id)
        return answer(stored.deleted(response_id))

    @router.post("/{response_id}/cancel")
    async def cancel(response_id: str, request: Request) -> Response:
        return answer(await background.cancel(asked(request).owner, response_id))

    @router.get("/{response_id}/input_items")
    async def input_items(response_id: str, request: Request) -> Response:
        record = await background.get(asked(request).owner, response_id)
        items = [bytes(item) for item in items_of(record.input)]
        return answer(stored.listing(items, dict(request.query_params)))

    return router


async def follow(log: EventLog, start: int, every: float) -> AsyncIterator[bytes]:
    """The events of a response from number `start` on, as SSE."""
    async for events in log.read(start, every=every):
        yield b"".join(events)


async def _log(background: Background, owner: str, response_id: str) -> EventLog:
    await background.get(owner, response_id)
    log = background.log(owner, response_id)
    if log is None:
        raise InvalidRequestError(
            "The events of this response are not kept here; fetch it without `stream`",
            param="stream",
        )
    return log


def _number(given: str | None) -> int:
    if given is None:
        return -1
    if not given.isascii() or not given.isdigit():
        raise invalid("starting_after", "Input should be a sequence number")
    return int(given)


async def _compact(intake: Intake, request: Request) -> Response:
    """Have the model sum a conversation up: a whole turn, of which only the summary is shown."""
    sent = await asked_with_body(request, intake.ingress.limits)
    turn_id = uuid.uuid4().hex
    asking = msgspec.structs.replace(sent, body=stored.compactable(sent.body))
    read = await intake.read("responses", asking, turn_id=turn_id)
    exchange = WholeExchange(read.encoder())
    flight = await intake.begin(read, exchange)
    try:
        reply = await exchange.land()
    finally:
        intake.ingress.leave(flight)
    if reply.failed is not None:
        raise failure(reply.failed, flight.retry_after)
    whole = stored.continued(sent.body, read.earlier.items, turn_id)
    return answer(stored.compacted(whole, read.kept(reply), turn_id))

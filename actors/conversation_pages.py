"""Conversations over HTTP: lists of items that requests name instead of sending them."""

from __future__ import annotations

import time
import uuid

import msgspec
from fastapi import APIRouter, Request, Response

from actors.intake import Intake
from actors.page_requests import answer, asked, asked_with_body
from protocols import sse
from protocols.responses import conversations, stored


def conversation_pages(intake: Intake) -> APIRouter:
    router = APIRouter(prefix="/v1/conversations")
    store, limits = intake.responses, intake.ingress.limits

    @router.post("")
    async def create(request: Request) -> Response:
        sent = await asked_with_body(request, limits)
        name = conversations.minted(uuid.uuid4().hex)
        head, items = conversations.made(sent.body, name, int(time.time()))
        await store.available()
        await store.open(sent.owner, head, items)
        return answer(head)

    @router.get("/{name}")
    async def fetch(name: str, request: Request) -> Response:
        head, _ = await store.conversation(asked(request).owner, name)
        return answer(head)

    @router.post("/{name}")
    async def change(name: str, request: Request) -> Response:
        sent = await asked_with_body(request, limits)
        head, _ = await store.conversation(sent.owner, name)
        head = conversations.changed(sent.body, head)
        await store.open(sent.owner, head, [])
        return answer(head)

    @router.delete("/{name}")
    async def delete(name: str, request: Request) -> Response:
        await store.close(asked(request).owner, name)
        return answer(conversations.deleted(name))

    @router.get("/{name}/items")
    async def items(name: str, request: Request) -> Response:
        _, found = await store.conversation(asked(request).owner, name)
        return answer(stored.listing(found, dict(request.query_params)))

    @router.post("/{name}/items")
    async def add(name: str, request: Request) -> Response:
        sent = await asked_with_body(request, limits)
        await store.conversation(sent.owner, name)
        added = conversations.items_of(sent.body, uuid.uuid4().hex)
        await store.add(sent.owner, name, added)
        return answer(stored.listing(added, {"order": "asc"}))

    @router.get("/{name}/items/{item_id}")
    async def item(name: str, item_id: str, request: Request) -> Response:
        _, found = await store.conversation(asked(request).owner, name)
        return answer(conversations.found(found, item_id))

    @router.delete("/{name}/items/{item_id}")
    async def forget(name: str, item_id: str, request: Request) -> Response:
        owner = asked(request).owner
        head, found = await store.conversation(owner, name)
        gone = conversations.found(found, item_id)
        await store.replace(owner, name, [one for one in found if one is not gone])
        return answer(sse.dumps(msgspec.Raw(head)))

    return router

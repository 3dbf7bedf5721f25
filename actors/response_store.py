"""Stored responses and conversations: what of a turn is kept, and found again by its owner.

A record holds a turn's own input and output and names the turns before it, so that going on from
the hundredth response costs two round trips. Every use renews what it used.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import msgspec
from msgspec import Struct

from protocols import ids
from protocols.bodies import invalid
from protocols.responses import conversations, stored
from sessions.records import BEAT, CONVERSATION, CONVERSATION_HEAD, RESPONSE, StoredResponse
from sessions.store import Store, write
from turns.errors import NotFoundError
from turns.turn import Turn

MOST_ITEMS = 10_000
"""Items of a conversation that are kept: the latest."""

RUNNING = ("queued", "in_progress")
_array = msgspec.json.Decoder(list[msgspec.Raw]).decode


class Earlier(Struct, frozen=True):
    """What a request goes on from: the items before its own, and the responses they are of.

    Not `stored`: some of those responses are only remembered, and will be found nowhere.
    """

    items: tuple[bytes, ...] = ()
    responses: tuple[str, ...] = ()
    model: str = ""
    found: bool = False
    stored: bool = True


class ResponseStore:
    """`ttl` in seconds: how long a response is kept after it was last used."""

    def __init__(self, store: Store, *, ttl: float) -> None:
        self._store = store
        self._ttl = ttl

    async def earlier(self, turn: Turn, owner: str) -> Earlier:
        """What `turn` says that it goes on from. Raises NotFoundError, InvalidRequestError."""
        conversation = turn.echo.get("conversation", "")
        if turn.previous and conversation:
            raise invalid("conversation", "Give it or previous_response_id, not both")
        if conversation:
            head, items = await self.conversation(owner, conversation)
            return Earlier(tuple(items), found=bool(head))
        if turn.previous:
            return await self._before(owner, turn.previous)
        return Earlier()

    async def _before(self, owner: str, response_id: str) -> Earlier:
        last = await self._find(owner, response_id)
        if last is None:
            raise stored.not_found(response_id)
        if last.status in RUNNING:
            raise invalid("previous_response_id", f"'{response_id}' is {last.status}; wait for it")
        chain = [*await self._all(owner, last.ancestors), last]
        items = [
            item
            for one in chain
            for item in (*map(bytes, _array(one.input)), *stored.output_items(one.body))
        ]
        return Earlier(tuple(items), tuple(one.id for one in chain), last.model, found=True)

    async def _all(self, owner: str, names: Sequence[str]) -> list[StoredResponse]:
        if not names:
            return []
        found = await self._store.get(RESPONSE, owner, *names, renew=self._ttl)
        missing = next((name for name, one in zip(names, found, strict=True) if one is None), None)
        if missing is not None:
            raise stored.not_found(missing)
        return [one for one in found if one is not None]

    async def _find(self, owner: str, response_id: str) -> StoredResponse | None:
        (found,) = await self._store.get(RESPONSE, owner, response_id, renew=self._ttl)
        return found

    async def get(self, owner: str, response_id: str) -> StoredResponse:
        """Raises NotFoundError, also for what is another's."""
        found = await self._find(owner, response_id)
        if found is None:
            raise NotFoundError(f"Response with id '{response_id}' not found.", param="response_id")
        return found

    async def keep(
        self, owner: str, turn: Turn, *, sent: bytes, body: bytes, earlier: Earlier
    ) -> None:
        """Keep a response as its `body` now says it is; `sent` is the request as it came."""
        items = stored.input_items(sent, turn.id)
        whole = items if earlier.stored else [*earlier.items, *items]
        conversation = turn.echo.get("conversation", "")
        record = StoredResponse(
            id=ids.response(turn.id),
            api=turn.api,
            model=turn.model,
            created=time.time(),
            status=stored.status_of(body),
            input=b"[" + b",".join(whole) + b"]",
            body=body,
            previous=turn.previous,
            conversation=conversation,
            session=turn.session,
            ancestors=earlier.responses if earlier.stored else (),
        )
        await self.put(owner, record)
        if conversation and record.status in ("completed", "incomplete"):
            await self.add(owner, conversation, [*items, *stored.output_items(body)])

    async def available(self) -> None:
        """Raise UnavailableError where what is kept now would be lost."""
        await self._store.ping()

    async def beat(self, owner: str, response_id: str, seconds: float) -> None:
        """Say that somebody is at work on the response, for so many seconds."""
        await self._store.put(write(BEAT, owner, response_id, True, ttl=seconds))

    async def beating(self, owner: str, response_id: str) -> bool:
        (found,) = await self._store.get(BEAT, owner, response_id)
        return bool(found)

    async def put(self, owner: str, record: StoredResponse) -> None:
        await self._store.put(write(RESPONSE, owner, record.id, record, ttl=self._ttl))

    async def delete(self, owner: str, response_id: str) -> None:
        """Raises NotFoundError."""
        await self.get(owner, response_id)
        await self._store.delete(RESPONSE, owner, response_id)

    async def open(self, owner: str, head: bytes, items: Sequence[bytes]) -> None:
        """Begin a conversation, or change what is said of it (then without items)."""
        name = conversations.id_of(head)
        await self._store.put(write(CONVERSATION_HEAD, owner, name, head, ttl=self._ttl))
        await self.add(owner, name, items)

    async def conversation(self, owner: str, name: str) -> tuple[bytes, list[bytes]]:
        """A conversation and its items. Raises NotFoundError."""
        (head,) = await self._store.get(CONVERSATION_HEAD, owner, name, renew=self._ttl)
        if head is None:
            raise conversations.not_found(name)
        return head, await self._store.items(CONVERSATION, owner, name)

    async def add(self, owner: str, name: str, items: Sequence[bytes]) -> None:
        """Add items to the end of a conversation; none is no error."""
        await self._store.append(CONVERSATION, owner, name, items, ttl=self._ttl, keep=MOST_ITEMS)

    async def replace(self, owner: str, name: str, items: Sequence[bytes]) -> None:
        """Give a conversation other items."""
        await self._store.delete(CONVERSATION, owner, name)
        await self.add(owner, name, items)

    async def close(self, owner: str, name: str) -> None:
        """Forget a conversation. Raises NotFoundError."""
        await self.conversation(owner, name)
        await self._store.delete(CONVERSATION, owner, name)
        await self._store.delete(CONVERSATION_HEAD, owner, name)

"""Handles: the names under which rows are kept, and the book in which owner and lifetime stand."""

from __future__ import annotations

import re
import secrets
from typing import Any, Literal, Protocol

from msgspec import Struct, field

from turns.errors import NotFoundError

_SHAPE = re.compile(r"trj_[A-Za-z0-9_-]{22}\Z")


class UnknownHandleError(NotFoundError):
    """Not there, expired or somebody else's: the three are not told apart."""

    def __init__(self) -> None:
        super().__init__(
            "unknown or expired handle; call the streaming tool again to get a new one",
            param="handle",
        )


class Record(Struct):
    """What the book knows of a handle. Times are in seconds of the wall clock (`time.time`).

    `expires` moves with every use, at most to `dies`. `node` says on whose disk the rows lie,
    `holder` which gateway has the run while it has not ended.
    """

    handle: str
    owner: str
    tool: str
    created: float
    used: float
    expires: float
    dies: float
    bytes: int = 0
    rows: int = 0
    status: Literal["running", "yielded", "ended"] = "running"
    node: str = ""
    holder: str = ""
    call_id: str = ""
    cursor: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)
    snapshot: dict[str, Any] = field(default_factory=dict)


class Book(Protocol):
    """Where records live. `put` replaces; `get` gives None for what is not there."""

    async def put(self, record: Record) -> None: ...

    async def get(self, handle: str) -> Record | None: ...

    async def remove(self, handle: str) -> None: ...

    async def of_owner(self, owner: str) -> list[Record]: ...

    async def expired(self, now: float) -> list[Record]: ...


def new_handle() -> str:
    """128 bits of chance."""
    return f"trj_{secrets.token_urlsafe(16)}"


def is_handle(text: object) -> bool:
    """Whether the text has the shape of a handle; nothing else ever becomes a path or a key."""
    return isinstance(text, str) and _SHAPE.match(text) is not None

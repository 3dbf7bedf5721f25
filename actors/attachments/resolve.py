"""From a turn with files and URLs in it to one with their texts and pictures.

What cannot be shown becomes `Opaque`, its kind saying why, and is reported as all that is: a
session whose history holds a dead link goes on. A picture that only a URL leads to stays one where
nothing may be fetched; the renderer says what to do about it.
"""

from __future__ import annotations

import asyncio
from base64 import b64decode, b64encode
from binascii import Error
from collections.abc import Iterable

from msgspec.structs import replace

from actors.attachments.fetch import Fetched, Fetcher, FetchError
from actors.attachments.pdf import PdfError, PdfReader, PdfText
from protocols.documents import PDF, TEXTS, under
from turns.blocks import Block, Document, Image, Message, Opaque, Text, ToolResult
from turns.errors import InvalidRequestError
from turns.turn import Turn

MOST = 32
"""Attachments of one request that are read or fetched."""

SMALL = 65_536
PICTURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
)
Attached = Document | Image


class Attachments:
    """One per ingress; without a `fetcher` no URL is followed."""

    def __init__(self, pdf: PdfReader, fetcher: Fetcher | None = None) -> None:
        self._pdf = pdf
        self._fetcher = fetcher

    async def resolved(self, turn: Turn) -> Turn:
        """The turn without a `Document` in it. Raises InvalidRequestError where there are many."""
        kinds: tuple[type, ...] = (Document,) if self._fetcher is None else (Document, Image)
        attached = attached_to(turn.messages, kinds)
        if not attached:
            return turn
        found = list(dict.fromkeys(attached))
        if len(found) > MOST:
            raise InvalidRequestError(f"a request may have {MOST} attachments, not {len(found)}")
        made = await asyncio.gather(*(self._one(block) for block in found))
        known = dict(zip(found, made, strict=True))
        return replace(turn, messages=tuple(_with(message, known) for message in turn.messages))

    async def _one(self, block: Attached) -> list[Block]:
        kind = "image" if isinstance(block, Image) else "document"
        try:
            if isinstance(block, Image):
                return [await self._picture(block.url)]
            return await self._document(block)
        except (FetchError, PdfError) as error:
            named = block.url if isinstance(block, Image) else block.title or block.url
            return [Opaque(f"{kind}({error})", named)]

    async def _picture(self, url: str) -> Image:
        fetched = await self._fetched(url)
        kind = next((kind for head, kind in PICTURES if fetched.data.startswith(head)), "")
        if fetched.data[:4] == b"RIFF" and fetched.data[8:12] == b"WEBP":
            kind = "image/webp"
        if not kind:
            raise FetchError("no_picture")
        return Image(media_type=kind, data=b64encode(fetched.data).decode())

    async def _document(self, block: Document) -> list[Block]:
        if not block.url:
            return await self._read(block, await _decoded(block.data))
        fetched = await self._fetched(block.url)
        if fetched.media_type == PDF or fetched.data.startswith(b"%PDF-"):
            return await self._read(block, fetched.data)
        if fetched.media_type.startswith("text/") or fetched.media_type in TEXTS:
            text = fetched.data.decode(errors="replace")
            return under(block.title or block.url, block.context, text)
        raise FetchError("no_document")

    async def _read(self, block: Document, data: bytes) -> list[Block]:
        found = await self._pdf.text(data)
        shown = under(block.title or block.url, block.context, "\n\n".join(found.pages).strip())
        return [*shown, *_unread(found)]

    async def _fetched(self, url: str) -> Fetched:
        if self._fetcher is None:
            raise FetchError("url_not_fetched")
        return await self._fetcher.get(url)


def attached_to(messages: Iterable[Message], kinds: tuple[type, ...]) -> list[Attached]:
    """What there is to resolve. Every turn comes by here: types are compared, not asked."""
    found: list[Block] = []
    for message in messages:
        for block in message.blocks:
            kind = type(block)
            if kind is ToolResult and isinstance(block, ToolResult):
                found += [one for one in block.content if type(one) in kinds]
            elif kind in kinds:
                found.append(block)
    files = [one for one in found if isinstance(one, Document)]
    return [*files, *(one for one in found if isinstance(one, Image) and one.url)]


async def _decoded(data: str) -> bytes:
    try:
        if len(data) < SMALL:
            return b64decode(data)
        return await asyncio.to_thread(b64decode, data)
    except (Error, ValueError):
        raise PdfError("not_base64") from None


def _unread(found: PdfText) -> list[Block]:
    """What of the file the model will not see."""
    read = len(found.pages)
    if read < found.total:
        return [Opaque(f"document(pages_after_{read}_of_{found.total})")]
    if not found.size:
        return [Opaque("document(no_text)")]
    return []


def _with(message: Message, known: dict[Attached, list[Block]]) -> Message:
    """The message with what became of its attachments; what is hidden stands behind its result."""
    blocks: list[Block] = []
    for block in message.blocks:
        if isinstance(block, ToolResult):
            blocks += _result(block, known)
        elif isinstance(block, Document | Image) and block in known:
            blocks += known[block]
        else:
            blocks.append(block)
    return Message(message.role, tuple(blocks))


def _result(result: ToolResult, known: dict[Attached, list[Block]]) -> list[Block]:
    shown: list[Text | Image | Document] = []
    hidden: list[Block] = []
    for block in result.content:
        made = known.get(block) if isinstance(block, Document | Image) else None
        for one in [block] if made is None else made:
            if isinstance(one, Opaque):
                hidden.append(one)
            else:
                shown.append(one)  # type: ignore[arg-type] # an attachment becomes none but these
    return [replace(result, content=tuple(shown)), *hidden]


__all__ = ["Attachments"]

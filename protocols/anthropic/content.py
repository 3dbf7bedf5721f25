"""Content blocks of the Messages API, one function a type.

What the model cannot see becomes `Opaque`; nothing is dropped. A result that stands inside an
assistant message (server tools) is a tool result like any other.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from protocols import bodies, documents
from protocols.anthropic import wire
from protocols.tool_servers import flat_name
from turns.blocks import (
    Block,
    Document,
    Image,
    Opaque,
    Reasoning,
    Text,
    ToolCall,
    ToolReference,
    ToolResult,
)
from turns.errors import InvalidRequestError

Seen = Text | Image | Document | ToolReference


class Found:
    """One content block: what was read of it, the raw whole, and its path in the body."""

    def __init__(self, raw: msgspec.Raw, where: str) -> None:
        self.part = bodies.part(raw, wire.decode_block, where)
        self.raw = raw
        self.where = where

    def missing(self, name: str) -> InvalidRequestError:
        return bodies.invalid(f"{self.where}.{name}", "Field required")

    def inner(self, content: msgspec.Raw, name: str) -> list[Block]:
        """Blocks within this one, under the field `name`."""
        if not bodies.given(content):
            return []
        where = f"{self.where}.{name}"
        return blocks(bodies.part(content, wire.decode_content, where), where)

    def source(self) -> wire.Source:
        if not bodies.given(self.part.source):
            raise self.missing("source")
        return bodies.part(self.part.source, wire.decode_source, f"{self.where}.source")


def blocks(content: str | list[msgspec.Raw] | None, where: str) -> list[Block]:
    """The blocks of one message, in order. `where` is the path of `content`."""
    if isinstance(content, str):
        return [Text(content)] if content else []
    found: list[Block] = []
    for index, raw in enumerate(content or ()):
        found += block(raw, f"{where}.{index}")
    return found


def block(raw: msgspec.Raw, where: str) -> list[Block]:
    """One block; an empty text is none, a document of several parts is several."""
    found = Found(raw, where)
    if reader := READERS.get(found.part.type):
        return reader(found)
    return _result(found) if found.part.type.endswith("_tool_result") else _opaque(found)


def _opaque(found: Found) -> list[Block]:
    return [Opaque(found.part.type, bodies.value(found.raw, found.where))]


def _text(found: Found) -> list[Block]:
    if found.part.text is None:
        raise found.missing("text")
    return [Text(found.part.text)] if found.part.text else []


def _thinking(found: Found) -> list[Block]:
    text, seal = found.part.thinking or "", found.part.signature or ""
    return [Reasoning(text, seal=seal)] if text or seal else []


def _redacted(found: Found) -> list[Block]:
    return [Reasoning("", seal=found.part.data or "", redacted=True)]


def _call(found: Found) -> list[Block]:
    part = found.part
    if not part.name:
        raise found.missing("name")
    arguments = "{}"
    if bodies.given(part.input):
        bodies.value(part.input, f"{found.where}.input")  # well-formed, or a fault here
        arguments = bodies.text_of(part.input)
    name = part.name
    if part.type == "mcp_tool_use" and part.server_name:
        name = flat_name(part.server_name, name)
    return [ToolCall(part.id or "", name, arguments)]


def _result(found: Found) -> list[Block]:
    part = found.part
    if not part.tool_use_id:
        raise found.missing("tool_use_id")
    if bodies.opening(part.content) == b"{":
        inner = _server_result(part.content, f"{found.where}.content")
    else:
        inner = found.inner(part.content, "content")
    seen = tuple(block for block in inner if isinstance(block, Seen))
    hidden = [block for block in inner if not isinstance(block, Seen)]
    return [ToolResult(part.tool_use_id, seen, is_error=bool(part.is_error)), *hidden]


def _server_result(content: msgspec.Raw, where: str) -> list[Block]:
    """The result of a tool that Anthropic runs: an object with its own shape, shown as JSON."""
    part = bodies.part(content, wire.decode_block, where)
    if part.tool_references is None:
        return [Text(bodies.text_of(content))]
    return blocks(part.tool_references, f"{where}.tool_references")


def _reference(found: Found) -> list[Block]:
    name = found.part.tool_name or found.part.name
    return [ToolReference(name)] if name else _opaque(found)


def _addition(found: Found) -> list[Block]:
    """A tool that is offered from here on: one that was declared and left for later."""
    if not bodies.given(found.part.tool):
        return _opaque(found)
    tool = bodies.part(found.part.tool, wire.decode_block, f"{found.where}.tool")
    name = tool.tool_name or tool.name
    return [ToolReference(name)] if tool.type == "tool_reference" and name else _opaque(found)


def _image(found: Found) -> list[Block]:
    source = found.source()
    if source.type == "base64" and source.data:
        return [Image(media_type=source.media_type, data=source.data)]
    if source.type == "url" and source.url:
        return [Image(url=source.url)]
    return _opaque(found)


def _document(found: Found) -> list[Block]:
    """Text is shown under its title; a file is to be read first; one kept elsewhere cannot be."""
    source, part = found.source(), found.part
    title, context = part.title or "", part.context or ""
    if source.type == "text" and source.data:
        return documents.under(title, context, source.data)
    if source.type == "content":
        inner = found.inner(source.content, "source.content")
        return [*documents.under(title, context), *inner]
    if source.type == "url" and source.url:
        return [Document(url=source.url, title=title, context=context)]
    if source.type == "base64" and source.data:
        read = documents.read(source.media_type, source.data, title=title, context=context)
        return read or _opaque(found)
    return _opaque(found)


def _search_result(found: Found) -> list[Block]:
    part = found.part
    source = bodies.value(part.source, found.where) if bodies.given(part.source) else ""
    head = "\n".join(str(line) for line in (part.title, source) if line)
    inner = found.inner(part.content, "content")
    return [Text(head), *inner] if head else inner


def _web_hit(found: Found) -> list[Block]:
    """A hit of a past web search: its page is sealed for Anthropic, its title and URL are not."""
    head = "\n".join(line for line in (found.part.title, found.part.url) if line)
    return [Text(head)] if head else _opaque(found)


def _compaction(found: Found) -> list[Block]:
    """A summary that stands for what came before it."""
    return found.inner(found.part.content, "content") or _opaque(found)


Reader = Callable[[Found], list[Block]]
READERS: dict[str, Reader] = {
    "text": _text,
    "thinking": _thinking,
    "redacted_thinking": _redacted,
    "tool_use": _call,
    "server_tool_use": _call,
    "mcp_tool_use": _call,
    "tool_result": _result,
    "tool_reference": _reference,
    "tool_addition": _addition,
    "image": _image,
    "document": _document,
    "search_result": _search_result,
    "web_search_result": _web_hit,
    "compaction": _compaction,
}

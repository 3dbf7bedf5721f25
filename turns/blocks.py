"""Blocks: the pieces of a message, in their true order.

Interleaving is the order of one tuple of blocks, never two lists beside each other. A block holds
what a client or a model wrote, verbatim: nothing is trimmed, parsed or repaired here.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct, field

Role = Literal["system", "developer", "user", "assistant", "tool"]


class Text(Struct, frozen=True, tag="text"):
    """Text that the model or a person wrote."""

    text: str


class Reasoning(Struct, frozen=True, tag="reasoning"):
    """One span of the model's reasoning.

    `seal` is the opaque proof that travelled with it (Anthropic `signature`, Responses
    `encrypted_content`): ours, somebody else's or empty. `redacted` says that the text is not
    readable and only the seal came.
    """

    text: str
    seal: str = ""
    redacted: bool = False


class ToolCall(Struct, frozen=True, tag="tool_call"):
    """A call the model made. `arguments` is the JSON text (a custom tool: free text) as sent."""

    id: str
    name: str
    arguments: str
    kind: Literal["function", "custom"] = "function"
    namespace: str = ""


class Image(Struct, frozen=True, tag="image"):
    """An image: base64 `data` with its `media_type`, or a `url`. Exactly one of the two is set."""

    media_type: str = ""
    data: str = ""
    url: str = ""


class Document(Struct, frozen=True, tag="document"):
    """A file to be read to the model: base64 `data`, or a `url`; exactly one of the two is set.

    `title` and `context` go before its text. No model sees one: it is text, or `Opaque`, before a
    prompt is rendered (`actors.attachments`).
    """

    media_type: str = ""
    data: str = ""
    url: str = ""
    title: str = ""
    context: str = ""


class ToolReference(Struct, frozen=True, tag="tool_reference"):
    """A deferred tool that becomes visible to the model at this place of the conversation."""

    name: str


class ToolResult(Struct, frozen=True, tag="tool_result"):
    """What a tool sent back for the call `call_id`."""

    call_id: str
    content: tuple[Text | Image | Document | ToolReference, ...] = ()
    is_error: bool = False
    name: str = ""


class Opaque(Struct, frozen=True, tag="opaque"):
    """What a client sent and the model cannot see; kept so that it never vanishes silently."""

    kind: str
    value: Any = None


Block = Text | Reasoning | ToolCall | ToolResult | Image | Document | ToolReference | Opaque


class Message(Struct, frozen=True):
    """One message: a role and its blocks. Tool results stand in `tool` or `user` messages."""

    role: Role
    blocks: tuple[Block, ...] = field(default_factory=tuple)

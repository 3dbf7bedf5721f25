"""The Messages request as it comes, wide and tolerant: what is not named here is not read.

Content blocks stay raw until their type is known, so that an unknown type is kept whole and a
tool's input keeps its exact text.
"""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Raw, Struct, field, json

Count = Annotated[int, Meta(ge=1, le=2**31 - 1)]

NULL = Raw(b"null")  # msgspec knows no optional Raw


class WireMessage(Struct):
    role: str
    content: str | list[Raw] | None = None


class Source(Struct):
    """Where an image or a document comes from: `base64`, `url`, `text`, `content` or `file`."""

    type: str = ""
    media_type: str = ""
    data: str = ""
    url: str = ""
    content: Raw = NULL


class WireBlock(Struct):
    """Any content block: the union of the fields of all types that are read."""

    type: str = "text"
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    data: str | None = None
    id: str | None = None
    name: str | None = None
    server_name: str | None = None
    input: Raw = NULL
    tool_use_id: str | None = None
    content: Raw = NULL
    is_error: bool | None = None
    tool_name: str | None = None
    tool: Raw = NULL
    source: Raw = NULL
    title: str | None = None
    context: str | None = None
    url: str | None = None
    tool_references: list[Raw] | None = None


class ToolConfig(Struct):
    enabled: bool | None = None


class ToolConfigs(Struct):
    """What a toolset says of its tools: of all, and by name; `tools` were listed before."""

    default_config: ToolConfig | None = None
    configs: dict[str, ToolConfig] | None = None
    tools: list[dict[str, Any]] | None = None


class WireTool(Struct):
    """A tool or toolset of any type; the configs of each type have a form of their own."""

    name: str = ""
    type: str | None = None
    description: str | None = None
    input_schema: dict[str, Any] | None = None
    strict: bool | None = None
    defer_loading: bool | None = None
    mcp_server_name: str = ""
    cache_control: Any = None
    default_config: Any = None
    configs: Any = None
    tools: Any = None


class WireServerConfig(Struct):
    enabled: bool | None = None
    allowed_tools: list[str] | None = None


class WireServer(Struct):
    """A server of tools that are called for the client."""

    name: str = ""
    url: str = ""
    authorization_token: str | None = None
    tool_configuration: WireServerConfig | None = None


class WireToolChoice(Struct):
    type: str = "auto"
    name: str | None = None
    disable_parallel_tool_use: bool | None = None


class WireThinking(Struct):
    type: str = "adaptive"
    budget_tokens: Count | None = None
    display: str | None = None


class WireFormat(Struct):
    type: str = "text"
    schema: dict[str, Any] | None = None


class TaskBudget(Struct):
    """Tokens that the whole task may take, and how many of them are left."""

    total: int | None = None
    remaining: int | None = None


class OutputConfig(Struct):
    effort: str | None = None
    format: WireFormat | None = None
    task_budget: TaskBudget | None = None


class Metadata(Struct):
    user_id: str | None = None


class Request(Struct):
    """`POST /v1/messages` and `/v1/messages/count_tokens` (which has no `max_tokens`)."""

    model: str
    messages: list[WireMessage]
    max_tokens: Count | None = None
    system: str | list[Raw] | None = None
    tools: list[WireTool] | None = None
    mcp_servers: list[WireServer] | None = None
    tool_choice: WireToolChoice | None = None
    thinking: WireThinking | None = None
    output_config: OutputConfig | None = None
    output_format: WireFormat | None = None
    metadata: Metadata | None = None
    stop_sequences: list[str] | None = None
    stream: bool | None = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    top_k: int | None = None
    chat_template_kwargs: dict[str, Any] | None = None
    context_management: Any = None
    nvext: Any = None
    service_tier: Any = None
    cache_control: Any = None
    betas: Any = None


KNOWN = frozenset(Request.__struct_fields__)
decode_request = json.Decoder(Request).decode
decode_block = json.Decoder(WireBlock).decode
decode_source = json.Decoder(Source).decode
decode_content = json.Decoder(str | list[Raw] | None).decode


class SessionOfUser(Struct):
    """What Claude Code packs into `metadata.user_id`."""

    session_id: str = field(default="")


decode_user = json.Decoder(SessionOfUser).decode

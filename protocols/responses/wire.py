"""The Responses request as it comes, wide and tolerant.

Input items stay raw until their type is known, so that an unknown one is kept whole.
"""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Raw, Struct, json

Count = Annotated[int, Meta(ge=1, le=2**31 - 1)]

NULL = Raw(b"null")  # msgspec knows no optional Raw


class WireTool(Struct):
    """A tool of any type; a namespace holds tools of its own."""

    type: str = "function"
    name: str = ""
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None
    format: dict[str, Any] | None = None
    tools: list[dict[str, Any]] | None = None
    defer_loading: bool | None = None
    execution: str | None = None


class WireItem(Struct):
    """Any input item: the union of the fields of all types that are read."""

    type: str = "message"
    role: str = "user"
    id: str | None = None
    content: Raw = NULL
    summary: list[Raw] | None = None
    encrypted_content: str | None = None
    call_id: str | None = None
    name: str | None = None
    namespace: str | None = None
    server_label: str | None = None
    approval_request_id: str | None = None
    approve: bool | None = None
    reason: str | None = None
    arguments: Raw = NULL
    input: str | None = None
    output: Raw = NULL
    error: Raw = NULL
    action: Raw = NULL
    operation: Raw = NULL
    tools: list[dict[str, Any]] | None = None
    status: str | None = None


class WirePart(Struct):
    """A part of an item's content, summary or output."""

    type: str = "input_text"
    text: str | None = None
    refusal: str | None = None
    image_url: str | None = None
    file_data: str | None = None
    file_url: str | None = None
    filename: str | None = None


class WireReasoning(Struct):
    effort: str | None = None
    summary: str | None = None
    generate_summary: str | None = None


class WireFormat(Struct):
    type: str = "text"
    name: str = ""
    schema: dict[str, Any] | None = None
    strict: bool | None = None


class WireText(Struct):
    format: WireFormat | None = None
    verbosity: str | None = None


class WireChoice(Struct):
    type: str = "function"
    name: str | None = None
    mode: str | None = None
    server_label: str | None = None
    tools: list[dict[str, Any]] | None = None


class ClientMetadata(Struct):
    """What Codex says in the body; over a WebSocket it is all that names its session."""

    thread_id: Any = None
    session_id: Any = None


class Request(Struct):
    """`POST /v1/responses`, and `response.create` over a WebSocket."""

    model: str = ""
    input: str | list[Raw] | None = None
    instructions: str | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: str | dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    reasoning: WireReasoning | None = None
    text: WireText | None = None
    include: list[str] | None = None
    max_output_tokens: Count | None = None
    max_tool_calls: Count | None = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    top_logprobs: int | None = None
    store: bool | None = None
    stream: bool | None = None
    background: bool | None = None
    previous_response_id: str | None = None
    conversation: str | dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None
    prompt_cache_key: str | None = None
    safety_identifier: str | None = None
    service_tier: str | None = None
    truncation: str | None = None
    user: str | None = None
    client_metadata: ClientMetadata | None = None
    generate: bool | None = None
    type: str | None = None
    chat_template_kwargs: dict[str, Any] | None = None
    nvext: Any = None
    cache_control: Any = None
    stream_options: Any = None
    prompt_cache_retention: Any = None


KNOWN = frozenset(Request.__struct_fields__)
decode_request = json.Decoder(Request).decode
decode_item = json.Decoder(WireItem).decode
decode_part = json.Decoder(WirePart).decode
decode_content = json.Decoder(str | list[Raw] | None).decode

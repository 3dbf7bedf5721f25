"""The Chat Completions request as it comes, wide and tolerant."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Raw, Struct, json

Count = Annotated[int, Meta(ge=1, le=2**31 - 1)]
Seed = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
Penalty = Annotated[float, Meta(ge=-2, le=2)]


class WireFunctionCall(Struct):
    name: str = ""
    arguments: str | None = None


class WireCustomCall(Struct):
    name: str = ""
    input: str = ""


class WireCall(Struct):
    id: str | None = None
    type: str | None = None
    function: WireFunctionCall | None = None
    custom: WireCustomCall | None = None


class WireMessage(Struct):
    """A message of any role. Reasoning comes under the two names that clients know."""

    role: str
    content: str | list[Raw] | None = None
    name: str | None = None
    tool_calls: list[WireCall] | None = None
    tool_call_id: str | None = None
    function_call: WireFunctionCall | None = None
    reasoning_content: str | list[str] | None = None
    reasoning: str | list[str] | None = None
    reasoning_details: list[Raw] | None = None
    refusal: str | None = None


class ImageUrl(Struct):
    url: str


class WireFile(Struct):
    """A file in the message itself; one that was uploaded before has only a `file_id`."""

    file_data: str | None = None
    filename: str | None = None


class WireDetail(Struct):
    """One of `reasoning_details`: `reasoning.text`, `.summary` or `.encrypted`."""

    type: str = ""
    text: str | None = None
    summary: str | None = None
    data: str | None = None
    signature: str | None = None
    index: int | None = None


class WirePart(Struct):
    """A part of a message's content."""

    type: str = "text"
    text: str | None = None
    image_url: ImageUrl | str | None = None
    refusal: str | None = None
    file: WireFile | None = None


class WireFunction(Struct):
    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class WireCustom(Struct):
    name: str
    description: str | None = None
    format: dict[str, Any] | None = None


class WireTool(Struct):
    type: str = "function"
    function: WireFunction | None = None
    custom: WireCustom | None = None


class Named(Struct):
    name: str = ""


class WireChoice(Struct):
    type: str = "function"
    function: Named | None = None
    custom: Named | None = None
    allowed_tools: dict[str, Any] | None = None
    name: str | None = None


class WireSchema(Struct):
    name: str = ""
    schema: dict[str, Any] | None = None
    strict: bool | None = None


class WireFormat(Struct):
    type: str = "text"
    json_schema: WireSchema | None = None


class StreamOptions(Struct):
    include_usage: bool | None = None


class WireThinking(Struct):
    """`thinking` (DeepSeek, GLM, Kimi) and `reasoning` (OpenRouter) in one."""

    type: str | None = None
    budget_tokens: Count | None = None
    effort: str | None = None
    enabled: bool | None = None
    max_tokens: Count | None = None
    exclude: bool | None = None


class Request(Struct):
    """`POST /v1/chat/completions`."""

    model: str
    messages: list[WireMessage]
    max_tokens: Count | None = None
    max_completion_tokens: Count | None = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    top_k: int | None = None
    min_p: float | None = None
    seed: Seed | None = None
    presence_penalty: Penalty | None = None
    frequency_penalty: Penalty | None = None
    repetition_penalty: float | None = None
    stop: str | list[str] | None = None
    n: Count | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    tools: list[WireTool] | None = None
    tool_choice: str | WireChoice | None = None
    parallel_tool_calls: bool | None = None
    functions: list[WireFunction] | None = None
    function_call: str | Named | None = None
    response_format: WireFormat | None = None
    reasoning_effort: str | None = None
    reasoning: WireThinking | None = None
    thinking: bool | WireThinking | None = None
    enable_thinking: bool | None = None
    thinking_budget: Count | None = None
    chat_template_kwargs: dict[str, Any] | None = None
    chat_template: str | None = None
    prompt_cache_key: str | None = None
    nvext: Any = None
    cache_control: Any = None
    store: Any = None
    metadata: Any = None
    user: Any = None
    service_tier: Any = None
    safety_identifier: Any = None
    prompt_cache_retention: Any = None


KNOWN = frozenset(Request.__struct_fields__)
decode_request = json.Decoder(Request).decode
decode_part = json.Decoder(WirePart).decode
decode_detail = json.Decoder(WireDetail).decode

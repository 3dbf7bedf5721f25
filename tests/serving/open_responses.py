"""The public schema of the Responses API, as structs: what it requires and of which type.

Facts after the Open Responses specification of 2026-04-24, in our own words. Extra fields are
allowed there and here. Raw reasoning is named as OpenAI's API and its SDKs name it
(`response.reasoning_text`), which that document calls `response.reasoning`.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType

Status = Literal["in_progress", "completed", "incomplete"]


class Tagged(Struct, tag_field="type"):
    """One of a union that is told by its `type`."""


class InputText(Tagged, tag="input_text"):
    text: str


class OutputText(Tagged, tag="output_text"):
    text: str
    annotations: list[dict[str, Any]]
    logprobs: list[dict[str, Any]] | UnsetType = UNSET


class SummaryText(Tagged, tag="summary_text"):
    text: str


class ReasoningText(Tagged, tag="reasoning_text"):
    text: str


class Refusal(Tagged, tag="refusal"):
    refusal: str


class InputImage(Tagged, tag="input_image"):
    image_url: str | None


Part = InputText | OutputText | SummaryText | ReasoningText | Refusal | InputImage


class Message(Tagged, tag="message"):
    id: str
    status: Status
    role: Literal["user", "assistant", "system", "developer"]
    content: list[Part]
    phase: Literal["commentary", "final_answer"] | UnsetType = UNSET


class FunctionCall(Tagged, tag="function_call"):
    id: str
    call_id: str
    name: str
    arguments: str
    status: Status


class FunctionCallOutput(Tagged, tag="function_call_output"):
    id: str
    call_id: str
    output: str | list[Part]
    status: Status


class Reasoning(Tagged, tag="reasoning"):
    id: str
    summary: list[Part]
    content: list[Part] | UnsetType = UNSET
    encrypted_content: str | UnsetType = UNSET


class Compaction(Tagged, tag="compaction"):
    id: str
    encrypted_content: str


Item = Message | FunctionCall | FunctionCallOutput | Reasoning | Compaction


class Usage(Struct):
    input_tokens: int
    output_tokens: int
    total_tokens: int
    input_tokens_details: dict[Literal["cached_tokens", "cache_write_tokens"], int]
    output_tokens_details: dict[Literal["reasoning_tokens"], int]


class Failure(Struct):
    code: str
    message: str


class FunctionTool(Struct):
    type: Literal["function"]
    name: str
    description: str | None
    parameters: dict[str, Any] | None
    strict: bool | None


class Response(Struct):
    id: str
    object: Literal["response"]
    created_at: int
    completed_at: int | None
    status: str
    incomplete_details: dict[str, str] | None
    model: str
    previous_response_id: str | None
    instructions: str | None
    output: list[Item]
    error: Failure | None
    tools: list[FunctionTool]
    tool_choice: Literal["none", "auto", "required"] | dict[str, Any]
    truncation: Literal["auto", "disabled"]
    parallel_tool_calls: bool
    text: dict[str, Any]
    top_p: float
    presence_penalty: float
    frequency_penalty: float
    top_logprobs: int
    temperature: float
    reasoning: dict[str, str | None] | None
    usage: Usage | None
    max_output_tokens: int | None
    max_tool_calls: int | None
    store: bool
    background: bool
    service_tier: str
    metadata: Any
    safety_identifier: str | None
    prompt_cache_key: str | None


class Compacted(Struct):
    id: str
    object: Literal["response.compaction"]
    output: list[Item]
    created_at: int
    usage: Usage


class Error(Struct):
    """The error of a WebSocket frame."""

    code: str
    message: str
    type: str | UnsetType = UNSET
    param: str | UnsetType | None = UNSET


class ErrorFrame(Struct):
    type: Literal["error"]
    status: int
    error: Error


FIELDS: dict[str, dict[str, Any]] = {
    "response.created": {"response": Response},
    "response.in_progress": {"response": Response},
    "response.completed": {"response": Response},
    "response.failed": {"response": Response},
    "response.incomplete": {"response": Response},
    "response.output_item.added": {"output_index": int, "item": Item},
    "response.output_item.done": {"output_index": int, "item": Item},
    "response.content_part.added": {"part": Part},
    "response.content_part.done": {"part": Part},
    "response.output_text.delta": {"delta": str},
    "response.output_text.done": {"text": str},
    "response.function_call_arguments.delta": {"delta": str},
    "response.function_call_arguments.done": {"arguments": str},
    "response.reasoning_text.delta": {"delta": str},
    "response.reasoning_text.done": {"text": str},
    "response.reasoning_summary_part.added": {"part": Part},
    "response.reasoning_summary_part.done": {"part": Part},
    "response.reasoning_summary_text.delta": {"delta": str},
    "response.reasoning_summary_text.done": {"text": str},
}
"""What each event must have, beside its number and its place."""

LAST = ("response.completed", "response.failed", "response.incomplete")


def response(value: Any) -> Response:
    """Raises msgspec.ValidationError where the schema is not met; so do all below."""
    return msgspec.convert(value, Response)


def compacted(value: Any) -> Compacted:
    return msgspec.convert(value, Compacted)


def error_frame(value: Any) -> ErrorFrame:
    return msgspec.convert(value, ErrorFrame)


def events(found: list[dict[str, Any]]) -> Response:
    """A whole stream of events; gives its last response. Every event must be known."""
    for number, event in enumerate(found):
        kind = event["type"]
        assert event["sequence_number"] == number
        for name, wanted in FIELDS[kind].items():
            msgspec.convert(event[name], wanted)
        if "item_id" in event:
            place = "summary_index" if "summary" in kind else "content_index"
            wanted = ("output_index",) if "arguments" in kind else ("output_index", place)
            assert all(isinstance(event[name], int) for name in wanted)
    assert [event["type"] for event in found].count("response.created") == 1
    assert found[0]["type"] == "response.created"
    assert found[-1]["type"] in LAST
    return response(found[-1]["response"])

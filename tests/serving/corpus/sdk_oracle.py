"""What the official SDKs make of a stream: its events, or the error they raise."""

from __future__ import annotations

import json
from typing import Any

import anthropic
import openai


async def _anthropic(url: str, body: dict[str, Any]) -> list[Any]:
    async with (
        anthropic.AsyncAnthropic(api_key="k", base_url=url, max_retries=0) as sdk,
        sdk.messages.stream(**body) as stream,
    ):
        message = await stream.get_final_message()
    return [block.input for block in message.content if block.type == "tool_use"]


async def _chat(url: str, body: dict[str, Any]) -> list[Any]:
    async with (
        openai.AsyncOpenAI(api_key="k", base_url=f"{url}/v1", max_retries=0) as sdk,
        sdk.chat.completions.stream(**body) as stream,
    ):
        completion = await stream.get_final_completion()
    calls = completion.choices[0].message.tool_calls or []
    return [json.loads(call.function.arguments) for call in calls]


async def _responses(url: str, body: dict[str, Any]) -> list[Any]:
    async with (
        openai.AsyncOpenAI(api_key="k", base_url=f"{url}/v1", max_retries=0) as sdk,
        sdk.responses.stream(**body) as stream,
    ):
        response = await stream.get_final_response()
    return [json.loads(i.arguments) for i in response.output if i.type == "function_call"]


SDKS = {
    "anthropic.messages.stream": _anthropic,
    "openai.chat.completions.stream": _chat,
    "openai.responses.stream": _responses,
}


# --- lifecycle

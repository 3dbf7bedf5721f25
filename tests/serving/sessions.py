"""A session as a harness holds one: an official SDK asks, and sends back what it was answered."""

from __future__ import annotations

from typing import Any

import anthropic
import openai

from tests.serving.asks import TOOLS, ask
from tests.serving.server import Server

RESULT = "rain <think> and wind"
ONWARD = "And tomorrow?"
REASONS: dict[str, dict[str, Any]] = {
    "messages": {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 2000},
    "responses": {"include": ["reasoning.encrypted_content"], "store": False},
    "chat": {},
}
"""What an agentic harness asks for, beside the tools."""


class Session:
    """`answers` are the SDK's own objects, `cached` the cached prompt tokens that each tells of."""

    def __init__(self, server: Server, api: str, *, stream: bool, **fields: Any) -> None:
        self.api = api
        self.stream = stream
        self.body = ask(api, **{"tools": TOOLS[api]} | REASONS[api] | fields)
        if api == "responses":
            self.body["input"] = [{"role": "user", "content": self.body["input"]}]
        self.answers: list[Any] = []
        self.cached: list[int] = []
        where: dict[str, Any] = {"api_key": "none", "max_retries": 0}
        self._claude = anthropic.AsyncAnthropic(base_url=server.url, **where)
        self._gpt = openai.AsyncOpenAI(base_url=f"{server.url}/v1", **where)

    async def turn(self) -> Any:
        """One turn, after which the body is the next turn's."""
        answer = await self._asked()
        self.answers.append(answer)
        self._go_on(answer)
        return answer

    async def _asked(self) -> Any:
        match self.api, self.stream:
            case "messages", True:
                async with self._claude.messages.stream(**self.body) as stream:
                    return await stream.get_final_message()
            case "messages", _:
                return await self._claude.messages.create(**self.body)
            case "responses", True:
                async with self._gpt.responses.stream(**self.body) as events:
                    return [event async for event in events][-1].response
            case "responses", _:
                return await self._gpt.responses.create(**self.body)
            case _, True:
                told = {"stream_options": {"include_usage": True}}
                async with self._gpt.chat.completions.stream(**self.body, **told) as chunks:
                    return await chunks.get_final_completion()
            case _:
                return await self._gpt.chat.completions.create(**self.body)

    def _go_on(self, answer: Any) -> None:
        match self.api:
            case "messages":
                self.cached.append(answer.usage.cache_read_input_tokens)
                told = [{"role": "assistant", "content": answer.to_dict()["content"]}]
                calls = [block.id for block in answer.content if block.type == "tool_use"]
                content = [
                    {"type": "tool_result", "tool_use_id": call, "content": RESULT}
                    for call in calls
                ]
                told.append({"role": "user", "content": content or ONWARD})
                self.body["messages"] = [*self.body["messages"], *told]
            case "responses":
                self.cached.append(answer.usage.input_tokens_details.cached_tokens)
                told = answer.to_dict()["output"]
                calls = [item.call_id for item in answer.output if item.type == "function_call"]
                results: list[dict[str, Any]] = [
                    {"type": "function_call_output", "call_id": call, "output": RESULT}
                    for call in calls
                ]
                told += results or [{"role": "user", "content": ONWARD}]
                self.body["input"] = [*self.body["input"], *told]
            case _:
                self.cached.append(answer.usage.prompt_tokens_details.cached_tokens)
                message = answer.choices[0].message
                results = [
                    {"role": "tool", "tool_call_id": call.id, "content": RESULT}
                    for call in message.tool_calls or ()
                ]
                told = [message.to_dict(), *(results or [{"role": "user", "content": ONWARD}])]
                self.body["messages"] = [*self.body["messages"], *told]

    async def close(self) -> None:
        await self._claude.close()
        await self._gpt.close()

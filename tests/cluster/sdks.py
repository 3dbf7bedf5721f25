"""The official SDKs on a real server, sync and async alike, with every byte they read recorded."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import anthropic
import httpx2
import openai

from benchmarks.served import Server
from tests.cluster.asks import ask

PATIENCE = 60.0


class Tape(httpx2.SyncByteStream, httpx2.AsyncByteStream):
    """The body of a response, kept as it passes."""

    def __init__(self, stream: Any, kept: bytearray) -> None:
        self._stream = stream
        self._kept = kept

    def __iter__(self) -> Iterator[bytes]:
        for data in self._stream:
            self._kept += data
            yield data

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for data in self._stream:
            self._kept += data
            yield data

    def close(self) -> None:
        self._stream.close()

    async def aclose(self) -> None:
        await self._stream.aclose()


class Recorder:
    """Clients of both kinds whose responses are recorded in `tapes`, one after the other."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.tapes: list[bytearray] = []

    @property
    def raw(self) -> bytes:
        """The last response's body."""
        return bytes(self.tapes[-1])

    def _hook(self, response: httpx2.Response) -> None:
        self.tapes.append(bytearray())
        response.stream = Tape(response.stream, self.tapes[-1])

    async def _ahook(self, response: httpx2.Response) -> None:
        self._hook(response)

    def sync(self) -> httpx2.Client:
        return httpx2.Client(timeout=PATIENCE, event_hooks={"response": [self._hook]})

    def asynchronous(self) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(timeout=PATIENCE, event_hooks={"response": [self._ahook]})

    def claude(self) -> anthropic.Anthropic:
        return anthropic.Anthropic(http_client=self.sync(), **self._where(""))

    def async_claude(self) -> anthropic.AsyncAnthropic:
        return anthropic.AsyncAnthropic(http_client=self.asynchronous(), **self._where(""))

    def gpt(self) -> openai.OpenAI:
        return openai.OpenAI(http_client=self.sync(), **self._where("/v1"))

    def async_gpt(self) -> openai.AsyncOpenAI:
        return openai.AsyncOpenAI(http_client=self.asynchronous(), **self._where("/v1"))

    def _where(self, path: str) -> dict[str, Any]:
        return {"base_url": self._server.url(path), "api_key": "none", "max_retries": 0}


def request(api: str, words: str, **fields: Any) -> dict[str, Any]:
    """A request as an SDK's method takes it: whether it streams is the method's business."""
    body = ask(api, words, **fields)
    del body["stream"]
    return body


def streamed(recorder: Recorder, api: str, body: dict[str, Any]) -> Any:
    """What the sync stream helper of an API makes of a stream: the whole answer."""
    match api:
        case "messages":
            with recorder.claude() as sdk, sdk.messages.stream(**body) as stream:
                return stream.get_final_message()
        case "responses":
            with recorder.gpt() as sdk, sdk.responses.stream(**body) as events:
                return list(events)[-1].response
        case _:
            with recorder.gpt() as sdk:
                try:
                    with sdk.chat.completions.stream(**body) as chunks:
                        return chunks.get_final_completion()
                except openai.LengthFinishReasonError as error:
                    return error.completion


async def async_streamed(recorder: Recorder, api: str, body: dict[str, Any]) -> Any:
    """The same by the async one."""
    match api:
        case "messages":
            async with recorder.async_claude() as sdk, sdk.messages.stream(**body) as stream:
                return await stream.get_final_message()
        case "responses":
            async with recorder.async_gpt() as sdk, sdk.responses.stream(**body) as events:
                return [event async for event in events][-1].response
        case _:
            async with recorder.async_gpt() as sdk:
                try:
                    async with sdk.chat.completions.stream(**body) as chunks:
                        return await chunks.get_final_completion()
                except openai.LengthFinishReasonError as error:
                    return error.completion


def whole(recorder: Recorder, api: str, body: dict[str, Any]) -> Any:
    """The same request without streaming."""
    match api:
        case "messages":
            with recorder.claude() as sdk:
                return sdk.messages.create(**body)
        case "responses":
            with recorder.gpt() as sdk:
                return sdk.responses.create(**body)
        case _:
            body = {name: value for name, value in body.items() if name != "stream_options"}
            with recorder.gpt() as sdk:
                return sdk.chat.completions.create(**body)


NAMES = {"id", "item_id", "call_id", "signature", "encrypted_content", "created", "created_at"}
PARSED = {"index", "cached_tokens", "parsed", "parsed_output", "parsed_arguments", "completed_at"}


def essence(value: Any) -> Any:
    """An answer without what differs from one turn to the next, or is the SDK's own addition."""
    if isinstance(value, list):
        return [essence(one) for one in value]
    if not isinstance(value, dict):
        return value
    kept = {k: v for k, v in value.items() if k not in PARSED and v is not None}
    if "cache_read_input_tokens" in kept:  # what the cache holds changes, the prompt does not
        kept["input_tokens"] += kept.pop("cache_read_input_tokens")
    return {name: bool(one) if name in NAMES else essence(one) for name, one in kept.items()}


def blocks(api: str, answer: Any) -> list[tuple[str, ...]]:
    """An answer's content in its order, in the words of no API."""
    match api:
        case "messages":
            return [_anthropic(block) for block in answer.content]
        case "responses":
            return [_item(item) for item in answer.output]
        case _:
            message = answer.choices[0].message
            found = [("think", message.to_dict().get("reasoning_content"))]
            found.append(("text", message.content))
            calls = message.tool_calls or []
            found += [("call", call.function.name, call.function.arguments) for call in calls]
            return [one for one in found if one[1]]


def _anthropic(block: Any) -> tuple[str, ...]:
    match block.type:
        case "thinking":
            return "think", block.thinking
        case "text":
            return "text", block.text
        case "tool_use":
            return "call", block.name, block.input
        case other:
            raise AssertionError(f"a block of type {other}")


def _item(item: Any) -> tuple[str, ...]:
    match item.type:
        case "reasoning":
            parts = [*(item.summary or []), *(item.content or [])]
            return "think", parts[0].text
        case "message":
            return "text", item.content[0].text
        case "function_call":
            return "call", item.name, item.arguments
        case other:
            raise AssertionError(f"an item of type {other}")


def stop(api: str, answer: Any) -> str:
    """Why an answer ended, in one word."""
    match api:
        case "messages":
            return str(answer.stop_reason)
        case "responses":
            details = answer.incomplete_details
            return details.reason if details else answer.status
        case _:
            return str(answer.choices[0].finish_reason)


def next_turn(api: str, body: dict[str, Any], answer: Any, results: list[str]) -> dict[str, Any]:
    """The request that brings the results of the answer's calls, in their order."""
    match api:
        case "messages":
            calls = [block.id for block in answer.content if block.type == "tool_use"]
            given = [
                {"type": "tool_result", "tool_use_id": call, "content": result}
                for call, result in zip(calls, results, strict=True)
            ]
            said = [{"role": "assistant", "content": answer.to_dict()["content"]}]
            return body | {
                "messages": [*body["messages"], *said, {"role": "user", "content": given}]
            }
        case "responses":
            calls = [item.call_id for item in answer.output if item.type == "function_call"]
            outputs = [
                {"type": "function_call_output", "call_id": call, "output": result}
                for call, result in zip(calls, results, strict=True)
            ]
            return body | {"input": [*body["input"], *answer.to_dict()["output"], *outputs]}
        case _:
            message = answer.choices[0].message
            told = [
                {"role": "tool", "tool_call_id": call.id, "content": result}
                for call, result in zip(message.tool_calls, results, strict=True)
            ]
            return body | {"messages": [*body["messages"], message.to_dict(), *told]}

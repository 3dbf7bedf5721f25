"""examples/gateway.py: a whole gateway of the rooms' wheels, the official SDKs as its clients."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import openai
import pytest

from families import registry
from prompts.folders import scripted_folder

pytest.importorskip("treadle", reason="only where the wheels are installed: just test-prompts")
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "gateway.py"

SAID = (
    "<think>\nThe file will tell.\n</think>\n\nI look.\n"
    '<tool_call>\n{"name": "read", "arguments": {"path": "a.txt"}}\n</tool_call>'
)
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}
ASKED = [{"role": "user", "content": "What is in a.txt?"}]


class Upstream:
    """A server of text completions that says the same each time, a few characters a chunk."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.asked.append(json.loads((await receive())["body"]))
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for at in range(0, len(SAID), 7):
            choice = {"text": SAID[at : at + 7], "finish_reason": None}
            if at + 7 >= len(SAID):
                choice["finish_reason"] = "stop"
            line = f"data: {json.dumps({'choices': [choice]})}\n\n".encode()
            await send({"type": "http.response.body", "body": line, "more_body": True})
        await send({"type": "http.response.body", "body": b"data: [DONE]\n\n"})


@pytest.fixture
def upstream() -> Upstream:
    return Upstream()


@pytest.fixture
def http(upstream: Upstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> httpx2.AsyncClient:
    """The gateway's client: everything in this process, nothing on the network."""
    folder = scripted_folder(tmp_path / "model", registry.get("qwen3"))
    monkeypatch.setenv("MODEL", str(folder))
    monkeypatch.setenv("UPSTREAM", "http://upstream/completions")
    spec = importlib.util.spec_from_file_location("gateway", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    gateway = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(gateway)
    gateway.UPSTREAM = httpx2.AsyncClient(transport=httpx2.ASGITransport(upstream))
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(gateway.app))


async def test_claude_sees_reasoning_text_and_a_call_in_their_order(
    http: httpx2.AsyncClient, upstream: Upstream
) -> None:
    client = anthropic.AsyncAnthropic(base_url="http://gateway", api_key="-", http_client=http)
    async with client.messages.stream(
        model="m",
        max_tokens=100,
        messages=ASKED,
        thinking={"type": "enabled", "budget_tokens": 50},
        tools=[{"name": "read", "input_schema": SCHEMA}],
    ) as stream:
        message = await stream.get_final_message()
    assert [block.type for block in message.content] == ["thinking", "text", "tool_use"]
    assert message.content[2].input == {"path": "a.txt"}
    assert message.stop_reason == "tool_use"
    assert message.usage.input_tokens == len(upstream.asked[0]["prompt"])


async def test_an_openai_client_gets_the_fold_of_the_same(http: httpx2.AsyncClient) -> None:
    client = openai.AsyncOpenAI(base_url="http://gateway/v1", api_key="-", http_client=http)
    tool = {"type": "function", "function": {"name": "read", "parameters": SCHEMA}}
    answer = await client.chat.completions.create(model="m", messages=ASKED, tools=[tool])
    (call,) = answer.choices[0].message.tool_calls
    assert json.loads(call.function.arguments) == {"path": "a.txt"}
    assert answer.choices[0].message.content == "I look."


async def test_bad_input_is_refused_in_the_shape_of_its_api(http: httpx2.AsyncClient) -> None:
    answer = await http.post("http://gateway/v1/messages", content=b"{}")
    assert answer.status_code == 400
    assert answer.json()["error"]["type"] == "invalid_request_error"

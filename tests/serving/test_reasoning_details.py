"""`reasoning_details` on Chat: given to clients that speak the dialect, and read when they come back."""

from __future__ import annotations

from typing import Any

import pytest

from tests.protocols import apis
from tests.serving.asks import PATHS, TOOLS, ask
from tests.serving.server import Server

PATH = PATHS["chat"]
SECRET = "pondering  the <weather>"
ASKED = {"reasoning": {"effort": "high"}, "tools": TOOLS["chat"]}


async def answered(server: Server, *, stream: bool, **fields: Any) -> dict[str, Any]:
    """The message of the reply, put together from its chunks where it was streamed."""
    answer = await server.http.post(PATH, json=ask("chat", stream=stream, **fields))
    assert answer.status_code == 200, answer.text
    if not stream:
        message: dict[str, Any] = answer.json()["choices"][0]["message"]
        return message
    assert apis.problems("chat", answer.content) == []
    deltas = [d["choices"][0]["delta"] for _, d in apis.parse(answer.content)[:-1] if d["choices"]]
    found = [one for delta in deltas for one in delta.get("reasoning_details", ())]
    return {"reasoning_details": found} if found else {}


@pytest.mark.parametrize("stream", [True, False])
async def test_each_span_has_an_entry_with_its_seal(server: Server, stream: bool) -> None:
    server.says({"think": "first"}, {"call": {"tool": "forecast"}}, {"think": "second"})
    found = (await answered(server, stream=stream, **ASKED))["reasoning_details"]
    assert [(one["index"], one["text"]) for one in found] == [(0, "first"), (1, "second")]
    assert all(one["type"] == "reasoning.text" and one["signature"] for one in found)


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("fields", [{}, {"reasoning": {"exclude": True}}], ids=["plain", "hidden"])
async def test_no_other_client_sees_them(
    server: Server, stream: bool, fields: dict[str, Any]
) -> None:
    server.says({"think": "first"}, {"text": "Rain."})
    assert "reasoning_details" not in await answered(server, stream=stream, **fields)


async def test_reasoning_comes_back_from_its_seal_alone(server: Server) -> None:
    server.says({"think": SECRET}, {"call": {"tool": "forecast"}})
    made = await answered(server, stream=False, **ASKED)
    details = [{"type": "reasoning.encrypted", "data": made["reasoning_details"][0]["signature"]}]
    reply = {"role": "assistant", "content": None, "tool_calls": made["tool_calls"]}
    result = {"role": "tool", "tool_call_id": made["tool_calls"][0]["id"], "content": "wet"}
    first = ask("chat")["messages"]
    talk = [*first, reply | {"reasoning_details": details}, result]
    await answered(server, stream=False, **ASKED, messages=talk)
    decode = server.ingress.models[0].folder.tokenizer.decode
    assert SECRET in decode(server.engine.jobs[-1].prompt)

"""How each shape of request in the corpus is played. What a case says in prose is written out here.

A shape that nobody knows fails: a case must never pass because it was not played.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any

from msgspec import Struct, field

from tests.serving.asks import PATHS, TOOLS
from tests.serving.corpus.cases import Case, server_of
from tests.serving.corpus.steps import Step, api_of, send
from tests.serving.server import Server


class Played(Struct):
    """What came of a case: its steps, the statuses of plain GETs, a count, and other facts."""

    case: Case
    steps: list[Step] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    counted: int = -1
    facts: list[dict[str, Any]] = field(default_factory=list)


Player = Callable[[Server, Case], Awaitable[Played]]
EXTRA = {"x-treadle-dispatch": "events"}


async def play(server: Server, case: Case) -> Played:
    request = case["request"]
    for key, player in PLAYERS.items():
        if key in request:
            return await player(server, case)
    raise AssertionError(f"nobody knows how to play {sorted(request)}")


async def one(server: Server, case: Case) -> Played:
    """The request itself."""
    return Played(case, [await _send(server, case, case["request"])])


async def with_headers(server: Server, case: Case) -> Played:
    request = case["request"]
    headers, query = request.get("headers", {}), request.get("query", "")
    return Played(case, [await _send(server, case, request["body"], headers, query)])


async def several(server: Server, case: Case) -> Played:
    """A pair, or each of a list: requests, or plain GETs."""
    played = Played(case)
    for ask in case["request"].get("pair") or case["request"]["each"]:
        if isinstance(ask, str):
            method, path = ask.split(" ", 1)
            headers = {"anthropic-version": "2023-06-01"}
            answer = await server.http.request(method, path, headers=headers)
            played.statuses.append(answer.status_code)
        else:
            played.steps.append(await _send(server, case, ask))
    return played


async def counted(server: Server, case: Case) -> Played:
    """The same body to the counter and to the API."""
    body = case["request"]["body"]
    counter, _ = case["request"]["same_body_to"]
    answer = await server.http.post(counter, json=body)
    return Played(case, [await _send(server, case, body)], counted=answer.json()["input_tokens"])


async def turns(server: Server, case: Case) -> Played:
    """Requests one after the other, `$1` the id of the first answer; or a session in prose."""
    request = case["request"]
    given = request["turns"]
    if given == 2:
        return await _second_of(server, case, request["turn1_output"])
    if given == ["user", "tool_result"]:
        return await _each_api(server, case)
    assert all(isinstance(turn, dict) for turn in given), given
    played = Played(case)
    for turn in given:
        body = _with_history(turn, given[0]) if "history_field" in turn else dict(turn)
        for name, value in body.items():
            if isinstance(value, str) and (found := re.fullmatch(r"\$(\d)", value)):
                body[name] = played.steps[int(found[1]) - 1].whole["id"]
        played.steps.append(await _send(server, case, body))
    return played


def _with_history(turn: dict[str, Any], first: dict[str, Any]) -> dict[str, Any]:
    """A tool loop whose reasoning comes back under another name."""
    call = {"id": "c1", "type": "function", "function": {"name": "forecast", "arguments": "{}"}}
    said = {"role": "assistant", "content": None, turn["history_field"]: "r", "tool_calls": [call]}
    result = {"role": "tool", "tool_call_id": "c1", "content": "rain"}
    return first | {"messages": [*first["messages"], said, result], "tools": TOOLS["chat"]}


async def compared(server: Server, case: Case) -> Played:
    """Going on from a stored response, and replaying it whole without the store."""
    first = {"model": "m", "input": "Weather in Bergen?", "tools": TOOLS["responses"]}
    first |= {"include": ["reasoning.encrypted_content"]}
    answer = (await _send(server, case, first | {"store": True})).whole
    result = _result_of("responses", answer, "rain")
    stateful = first | {"previous_response_id": answer["id"], "input": [result]}
    history = [{"role": "user", "content": first["input"]}, *answer["output"], result]
    stateless = first | {"input": history, "store": False}
    return Played(case, [await _send(server, case, body) for body in (stateful, stateless)])


async def _second_of(server: Server, case: Case, output: str) -> Played:
    """A call and its result over Chat, the first turn saying `output` as it stands."""
    server.says({"raw": output})
    names = re.findall(r"<function=(\w+)>|\"name\": \"(\w+)\"", output)
    tools = [
        tool
        if tool["function"]["name"] == name
        else {"type": "function", "function": {"name": name}}
        for name in ("".join(found) for found in names)
        for tool in TOOLS["chat"]
    ]
    first = {"model": "m", "messages": [{"role": "user", "content": "go"}], "tools": tools}
    step = await _send(server, case, first)
    assert step.status == 200, step.whole
    return Played(case, [step, await _send(server, case, _next("chat", first, step.whole))])


async def _each_api(server: Server, case: Case) -> Played:
    """The same session on every API: a question, a call, its result."""
    played = Played(case)
    for name in case["request"]["apis"]:
        api = name.split(".")[1]
        asked = {"model": "m", "tools": TOOLS[api]}
        if api == "responses":
            asked |= {"input": [{"role": "user", "content": "Weather in Bergen?"}]}
            asked |= {"include": ["reasoning.encrypted_content"]}
        else:
            asked |= {"messages": [{"role": "user", "content": "Weather in Bergen?"}]}
            asked |= (
                {"max_tokens": 256, "thinking": {"type": "enabled", "budget_tokens": 200}}
                if (api == "messages")
                else {}
            )
        first = await send(server, api, asked)
        played.steps += [first, await send(server, api, _next(api, asked, first.whole))]
    return played


def _next(api: str, asked: dict[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
    """The request that sends a tool's result back, everything else as it came."""
    result = _result_of(api, answer, "rain")
    if api == "responses":
        return asked | {"input": [*asked["input"], *answer["output"], result]}
    if api == "messages":
        said = {"role": "assistant", "content": answer["content"]}
        back = {"role": "user", "content": [result]}
        return asked | {"messages": [*asked["messages"], said, back]}
    said = answer["choices"][0]["message"]
    return asked | {"messages": [*asked["messages"], said, result]}


def _result_of(api: str, answer: dict[str, Any], text: str) -> dict[str, Any]:
    if api == "messages":
        (call,) = [block for block in answer["content"] if block["type"] == "tool_use"]
        return {"type": "tool_result", "tool_use_id": call["id"], "content": text}
    if api == "responses":
        (call,) = [item for item in answer["output"] if item["type"] == "function_call"]
        return {"type": "function_call_output", "call_id": call["call_id"], "output": text}
    (call,) = answer["choices"][0]["message"]["tool_calls"]
    return {"role": "tool", "tool_call_id": call["id"], "content": text}


async def rendered(server: Server, case: Case) -> Played:
    """A history in prose, over the API that can say it; for each family that is named."""
    history, families = case["request"]["history"], case["request"].get("family")
    if isinstance(history, list):
        return Played(case, [await send(server, "messages", _interleaved(history))])
    assert history == "user, assistant(reasoning+text, no calls), user", history
    played = Played(case)
    for family in families:
        async with server_of(case, family) as other:
            for reasoning in ({"reasoning_content": "OLD-REASONING"}, {}):
                said = {"role": "assistant", "content": "Hello.", **reasoning}
                question = [{"role": "user", "content": text} for text in ("hi", "and now?")]
                body = {"model": "m", "messages": [question[0], said, question[1]]}
                played.steps.append(await send(other, "chat", body))
    return played


def _interleaved(history: list[list[Any]]) -> dict[str, Any]:
    blocks: list[dict[str, Any]] = []
    results: list[dict[str, Any]] = []
    for number, (kind, *said) in enumerate(history):
        if kind == "reasoning":
            blocks.append({"type": "thinking", "thinking": said[0], "signature": "s"})
        else:
            name, given = said
            call = {"type": "tool_use", "id": f"t{number}", "name": name, "input": given}
            blocks.append(call)
            results.append({"type": "tool_result", "tool_use_id": call["id"], "content": "rain"})
    asked = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": blocks},
        {"role": "user", "content": results},
    ]
    thinking = {"type": "enabled", "budget_tokens": 64}
    return {
        "model": "m",
        "max_tokens": 256,
        "messages": asked,
        "tools": TOOLS["messages"],
        "thinking": thinking,
    }


async def _send(
    server: Server,
    case: Case,
    body: dict[str, Any],
    headers: dict[str, str] | None = None,
    query: str = "",
) -> Step:
    output = case["engine_output"] or {}
    headers = dict(headers or {})
    if case["api"] == "dispatch" and output.get("dispatch_enabled", True):
        headers |= EXTRA
    api = api_of(case, body)
    if "prompt_tokens" in output:
        body = await _padded(server, api, body, output["prompt_tokens"])
    return await send(server, api, body, headers, query)


async def _padded(server: Server, api: str, body: dict[str, Any], tokens: int) -> dict[str, Any]:
    """The request with as many words more as make its prompt so long: the engine counts truly."""
    assert api == "messages"

    async def count(text: str) -> int:
        sent = body | {"messages": [{"role": "user", "content": text}]}
        answer = await server.http.post(f"{PATHS[api]}/count_tokens", json=sent)
        return int(answer.json()["input_tokens"])

    text = body["messages"][0]["content"]
    short = tokens - await count(text)
    while short > 0:
        text += " word" * short
        short = tokens - await count(text)
    assert short == 0
    return body | {"messages": [{"role": "user", "content": text}]}


PLAYERS: dict[str, Player] = {
    "same_body_to": counted,
    "body": with_headers,
    "pair": several,
    "each": several,
    "turns": turns,
    "compare": compared,
    "history": rendered,
    "model": one,
}

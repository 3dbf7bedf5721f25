"""Nemotron's thoughts and Qwen3-Coder's calls, interleaved, through the parser and every API."""

from __future__ import annotations

import json
from typing import Any

import pytest

from families import registry
from parsers import grammars
from parsers.detokenizer import Piece
from parsers.machine import TurnParser
from parsers.write import write
from protocols.registry import APIS
from turns.blocks import Reasoning, ToolCall
from turns.events import Event, TurnStarted, Usage
from turns.reply import fold
from turns.turn import Api, Tool

FAMILY = registry.choose("nemotron_v3", "qwen3_coder")
GRAMMAR = grammars.get(FAMILY.grammar, special=FAMILY.special_tokens)
TAIL = "<|im_start|>assistant\n<think>\n"
BLOCKS = [
    Reasoning("think0"),
    ToolCall("call_0", "find", '{"query": "a"}'),
    Reasoning("think1"),
    ToolCall("call_1", "find", '{"query": "b"}'),
]
REQUESTS: dict[Api, bytes] = {
    "messages": b'{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"}]}',
    "chat": b'{"model":"m","stream":true,"messages":[{"role":"user","content":"x"}]}',
    "responses": b'{"model":"m","stream":true,"input":"x"}',
}
WANTED = ["think0", "a", "think1", "b"]


def events() -> list[Event]:
    tool = Tool("find", parameters={"type": "object", "properties": {"query": {"type": "string"}}})
    parser = TurnParser(GRAMMAR, mint=lambda i, _: f"call_{i}", tools=(tool,), tail=TAIL)
    output = write(GRAMMAR, BLOCKS, tail=TAIL)
    said = [event for char in output for event in parser.feed([Piece(char)])]
    return [TurnStarted(9), *said, *parser.finish("stop", Usage(9, 0, 9))]


def test_the_machine_keeps_the_order() -> None:
    reply = fold(events())
    assert list(reply.blocks) == BLOCKS
    assert reply.stop == "tool_use"


@pytest.mark.parametrize("api", REQUESTS)
def test_a_stream_keeps_the_order(api: Api) -> None:
    turn = APIS[api].decode(REQUESTS[api], {}, turn_id="turn_1")
    encoder = APIS[api].encoder(turn, created=0, model="m")
    stream = b"".join(encoder.encode([event]) for event in events()).decode()
    frames = [line[6:] for line in stream.splitlines() if line.startswith("data: {")]
    assert _order(_words(api, [json.loads(frame) for frame in frames])) == WANTED


@pytest.mark.parametrize("api", REQUESTS)
def test_a_whole_answer_keeps_the_order(api: Api) -> None:
    turn = APIS[api].decode(REQUESTS[api], {}, turn_id="turn_1")
    status, body = APIS[api].encoder(turn, created=0, model="m").whole(fold(events()))
    assert status == 200
    answer = json.loads(body)
    if api == "chat":
        message = answer["choices"][0]["message"]
        assert message["reasoning_content"].split() == ["think0", "think1"]
        calls = [json.loads(call["function"]["arguments"]) for call in message["tool_calls"]]
        assert calls == [{"query": "a"}, {"query": "b"}]
    else:
        parts = answer["content"] if api == "messages" else answer["output"]
        assert _order(json.dumps(part) for part in parts) == WANTED


def _words(api: Api, frames: list[dict[str, Any]]) -> list[str]:
    """What the deltas of a stream say, in their order."""
    words = []
    for frame in frames:
        if api == "messages":
            delta = frame.get("delta", {})
            words.append(delta.get("thinking", "") + delta.get("partial_json", ""))
        elif api == "responses":
            words.append(frame["delta"] if isinstance(frame.get("delta"), str) else "\0")
        else:
            for choice in frame.get("choices", []):
                delta = choice["delta"]
                words.append(delta.get("reasoning_content") or "")
                calls = delta.get("tool_calls", [])
                words.extend(call["function"].get("arguments") or "" for call in calls)
    return ["".join(words)]


def _order(parts: Any) -> list[str]:
    """The words of the blocks in the order in which they come."""
    text = "\n".join(parts)
    places = {word: text.find(f'"{word}"' if len(word) == 1 else word) for word in WANTED}
    places |= {w: text.find(f'\\"{w}\\"') for w, at in places.items() if at < 0}
    assert min(places.values()) >= 0, text
    return sorted(WANTED, key=places.__getitem__)

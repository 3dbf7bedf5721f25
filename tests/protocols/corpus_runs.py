"""The corpus's protocol cases, run as far as they go without an engine and a prompt.

The engine's output is the case's own, in deltas; what parses it is the family's real parser; what
decodes the request and writes the answer is the API under test.
"""

from __future__ import annotations

import json
from codecs import getincrementaldecoder
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from families import registry
from parsers import grammars
from parsers.detokenizer import Piece
from parsers.machine import TurnParser
from protocols.registry import APIS
from tests.protocols import apis
from turns.events import Event, TurnFailed, TurnStarted, Usage
from turns.reply import Reply, fold
from turns.turn import Turn

NAMES = {
    "anthropic.messages": "messages",
    "openai.chat": "chat",
    "openai.responses": "responses",
    "dispatch": "chat",
}
Case = dict[str, Any]
PROMPT_TOKENS = 42


class Run(Struct):
    """One request of a case: the turn, its events, what was streamed and what was answered whole."""

    api: str
    turn: Turn
    events: list[Event]
    reply: Reply
    raw: bytes
    whole: dict[str, Any]

    @property
    def stream(self) -> list[tuple[str | None, Any]]:
        return apis.parse(self.raw)

    def kinds(self) -> list[str]:
        """The types of the stream's events, in order."""
        return [data["type"] for _, data in self.stream if isinstance(data, dict)]


def cases() -> list[Case]:
    found = [json.loads(path.read_text()) for path in sorted(apis.CORPUS.glob("protocol_cases/*"))]
    return [case for case in found if case["api"] in NAMES]


def runs(case: Case) -> list[Run]:
    """One run per request of the case; none where no engine is asked or the steps are several."""
    if case["engine_output"] is None:
        return []
    return [run(case, body, headers) for body, headers in requests(case["request"])]


def requests(request: Any) -> Iterator[tuple[dict[str, Any], dict[str, str]]]:
    if "body" in request:
        yield request["body"], request.get("headers", {})
    elif "each" in request or "pair" in request:
        for body in request.get("each") or request["pair"]:
            yield body, {}
    elif "model" in request:
        yield request, {}


def run(case: Case, body: dict[str, Any], headers: dict[str, str]) -> Run:
    api = NAMES[case["api"]]
    if case["api"] == "dispatch" and case["engine_output"].get("dispatch_enabled", True):
        headers = headers | {"x-treadle-dispatch": "events"}
    turn = APIS[api].decode(json.dumps(body).encode(), headers, turn_id="turn_1")
    events = parsed(case["engine_output"], turn)
    encoder = APIS[api].encoder(turn, created=1, model=turn.model)
    reply = fold(events)
    whole = json.loads(APIS[api].encoder(turn, created=1, model=turn.model).whole(reply)[1])
    return Run(api, turn, events, reply, encoder.encode(events), whole)


def parsed(output: dict[str, Any], turn: Turn) -> list[Event]:
    """The engine's output as events, through the parser of the case's family."""
    family = registry.choose(output.get("reasoning") or "", output.get("family") or "qwen3_coder")
    parser = TurnParser(
        grammars.get(family.grammar),
        mint=lambda index, _: f"call_{index}",
        tools=turn.tools,
        tail=output.get("prompt_tail", ""),
        tool_choice=turn.tool_choice,
    )
    usage = Usage(output.get("prompt_tokens", PROMPT_TOKENS), output.get("cached_tokens", 0), 7)
    events: list[Event] = [TurnStarted(usage.input, usage.cached)]
    texts, finish = deltas(output)
    for text in texts[: output.get("fail_after", len(texts))]:
        events += parser.feed([Piece(text)])
    if "fail_after" in output:
        return [*events, TurnFailed("engine", output.get("error", "the engine died"))]
    return events + parser.finish(finish, usage)


def deltas(output: dict[str, Any]) -> tuple[list[str], Any]:
    if "token_bytes" in output:
        decoder = getincrementaldecoder("utf-8")()
        return [decoder.decode(token_bytes(token)) for token in output["token_bytes"]], "stop"
    texts = [d if isinstance(d, str) else d["text"] for d in output.get("deltas") or ()]
    ends = [d["finish_reason"] for d in output.get("deltas") or () if isinstance(d, dict)]
    return texts, output.get("finish_reason") or (ends[-1] if ends else "stop")


def token_bytes(token: str) -> bytes:
    """A token of the case: bytes in hexadecimal, or plain text."""
    try:
        return bytes.fromhex(token)
    except ValueError:
        return token.encode()

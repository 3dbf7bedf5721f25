"""A gateway for harnesses in front of any server of text completions, without Ray.

    pip install treadle-prompts treadle-protocols httpx2 starlette uvicorn
    MODEL=path/to/model/folder UPSTREAM=http://127.0.0.1:8001/v1/completions uvicorn gateway:app

Prompts, reasoning, tool calls and the three APIs are treadle's; the tokens are the upstream's.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from pathlib import Path
from typing import Any

import httpx2
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from treadle.families import registry
from treadle.parsers import grammars
from treadle.parsers.detokenizer import Piece
from treadle.parsers.machine import TurnParser
from treadle.prompts.prompter import Prompter
from treadle.protocols.registry import APIS
from treadle.turns.errors import TreadleError
from treadle.turns.events import TurnStarted, Usage
from treadle.turns.reply import fold

PATHS = {api.path: api for api in APIS.values()}
FAMILY = registry.get(os.environ.get("FAMILY", "qwen3"))
PROMPTER = Prompter.load(Path(os.environ["MODEL"]), FAMILY)
UPSTREAM = httpx2.AsyncClient(timeout=600)


async def events_of(turn: Any, prompt: Any) -> Any:
    """The events of a turn as its text comes, one batch for each piece of it."""
    yield [TurnStarted(len(prompt.ids), 0)]
    grammar, tokens, finish = grammars.get(FAMILY.grammar), 0, "error"
    parser = TurnParser(
        grammar, tools=turn.tools, tail=prompt.tail, mint=lambda n, _: f"call_{turn.id}_{n}"
    )
    ask = {"model": turn.model, "prompt": prompt.ids, "stream": True, "skip_special_tokens": False}
    ask |= {"max_tokens": turn.sampling.max_tokens or 4096, "stop": list(turn.sampling.stop)}
    async with UPSTREAM.stream("POST", os.environ["UPSTREAM"], json=ask) as answer:
        async for line in answer.aiter_lines():
            if line.startswith("data: {"):
                choice = json.loads(line[6:])["choices"][0]
                tokens, finish = tokens + 1, choice["finish_reason"] or finish
                yield parser.feed([Piece(choice["text"])])
    yield parser.finish(finish, Usage(len(prompt.ids), 0, tokens), error="the upstream broke off")


async def serve(request: Request) -> Response:
    api, turn_id = PATHS[request.url.path], uuid.uuid4().hex
    try:
        turn = api.decode(await request.body(), request.headers, turn_id=turn_id)
        prompt = PROMPTER.prepare(turn)
    except TreadleError as error:
        status, headers, body = api.error(error, request_id=turn_id)
        return Response(body, status, headers)
    events = events_of(turn, prompt)
    encoder = api.encoder(turn, created=int(time.time()), model=turn.model)
    if turn.stream:
        sse = (encoder.encode(batch) async for batch in events)
        return StreamingResponse(sse, media_type="text/event-stream")
    status, body = encoder.whole(fold([event async for batch in events for event in batch]))
    return Response(body, status, media_type="application/json")


app = Starlette(routes=[Route(path, serve, methods=["POST"]) for path in PATHS])

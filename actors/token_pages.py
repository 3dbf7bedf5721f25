"""Counting and tokenising, by the renderer that turns are generated from.

So a count is what the engine would be given. `tokenize` and `detokenize` speak vLLM's fields.
"""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable

from fastapi import APIRouter, Request, Response

from actors.intake import Intake, permitted
from actors.model_service import ModelService
from actors.page_requests import answer, asked_with_body
from actors.reception import Asked
from protocols import tokenize
from protocols.counts import COUNTERS, Counter
from protocols.registry import APIS
from turns.errors import InvalidRequestError


def token_pages(intake: Intake) -> APIRouter:
    router = APIRouter()
    limits = intake.ingress.limits
    for path, counter in COUNTERS.items():
        router.add_api_route(path, _count(intake, counter), methods=["POST"])

    async def tokenized(request: Request) -> Response:
        return answer(await _tokenize(intake, await asked_with_body(request, limits)))

    async def detokenized(request: Request) -> Response:
        asked = await asked_with_body(request, limits)
        sent = tokenize.decode_tokens(asked.body)
        model = permitted(asked, intake.ingress.names.any(sent.model), sent.model)
        return answer(tokenize.text(model.folder.tokenizer.decode(sent.tokens)))

    for prefix in ("/v1", ""):
        router.add_api_route(f"{prefix}/tokenize", tokenized, methods=["POST"])
        router.add_api_route(f"{prefix}/detokenize", detokenized, methods=["POST"])
    return router


def _count(intake: Intake, counter: Counter) -> Callable[[Request], Awaitable[Response]]:
    async def count(request: Request) -> Response:
        asked = await asked_with_body(request, intake.ingress.limits)
        turn, _, size = await intake.turn(counter.decode, asked, uuid.uuid4().hex)
        model = permitted(asked, intake.ingress.names.model(turn.model), turn.model)
        prepared = await intake.ingress.prepared(model, turn, size=size, owner=asked.owner)
        prompt = prepared.prompt
        return answer(counter.body(len(prompt.ids)))

    return count


async def _tokenize(intake: Intake, asked: Asked) -> bytes:
    sent = tokenize.decode_request(asked.body)
    model = permitted(asked, intake.ingress.names.any(sent.model), sent.model)
    tokenizer = model.folder.tokenizer
    if sent.prompt is not None:
        ids = tokenizer.encode_text(sent.prompt, special=sent.add_special_tokens)
    else:
        ids = await _rendered(intake, model, asked, generate=sent.add_generation_prompt)
    spelled = [tokenizer.spelling(number) for number in ids] if sent.return_token_strs else None
    return tokenize.tokens(ids, model.context_window, spelled)


async def _rendered(
    intake: Intake, model: ModelService, asked: Asked, *, generate: bool
) -> list[int]:
    """The ids of a conversation, with or without the header that opens the reply."""
    turn, _, size = await intake.turn(APIS["chat"].decode, asked, uuid.uuid4().hex)
    owner = asked.owner
    prompt = (await intake.ingress.prepared(model, turn, size=size, owner=owner)).prompt
    if generate:
        return prompt.ids
    if prompt.reply_at < 0:
        raise InvalidRequestError(
            "This model's template does not tell where the reply would begin; leave it out",
            param="add_generation_prompt",
        )
    return prompt.ids[: prompt.reply_at]

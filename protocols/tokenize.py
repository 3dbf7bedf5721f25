"""`/v1/tokenize` and `/v1/detokenize`, with the fields of vLLM's `/tokenize` and `/detokenize`.

A text is tokenised by itself; messages (with tools) as the chat request that they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec
from msgspec import Meta, Raw, Struct

from protocols import bodies, sse


class Tokenize(Struct):
    """The fields of both forms that are read here; the rest is the chat request's own."""

    model: str = ""
    prompt: str | None = None
    messages: list[Raw] | None = None
    add_special_tokens: bool = True
    add_generation_prompt: bool = True
    return_token_strs: bool | None = None


class Detokenize(Struct):
    tokens: list[Annotated[int, Meta(ge=0)]]
    model: str = ""


_tokenize = msgspec.json.Decoder(Tokenize).decode
_detokenize = msgspec.json.Decoder(Detokenize).decode


def decode_request(body: bytes) -> Tokenize:
    """Raises InvalidRequestError, also where there is neither a prompt nor a message."""
    sent = bodies.read(body, _tokenize).request
    if sent.prompt is None and not sent.messages:
        raise bodies.invalid("prompt", "Give a prompt, or messages")
    return sent


def decode_tokens(body: bytes) -> Detokenize:
    return bodies.read(body, _detokenize).request


def tokens(ids: Sequence[int], window: int, spelled: Sequence[str] | None) -> bytes:
    """The answer of tokenize; `window` is what the model takes, 0 where it is not known."""
    return sse.dumps(
        {"count": len(ids), "max_model_len": window, "tokens": ids, "token_strs": spelled}
    )


def text(prompt: str) -> bytes:
    """The answer of detokenize."""
    return sse.dumps({"prompt": prompt})

"""vLLM's own parser on the same tokens, where vLLM is installed: the figure to stand beside.

It is driven as its server does, `parse_delta` once per token, with a tokenizer of exactly the
tokens of the output. Importing it fails where vLLM is not installed.
"""

from __future__ import annotations

import re
from time import process_time
from typing import Any

from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from transformers import PreTrainedTokenizerFast
from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
from vllm.parser import ParserManager

from turns.turn import Tool

SPECIAL = ("<think>", "</think>", "<tool_call>", "</tool_call>")


def cost(output: str, tool: Tool, token: re.Pattern[str]) -> float:
    """µs per token of qwen3_coder + qwen3."""
    pieces = _split(output, token)
    tokenizer = _tokenizer(pieces)
    ids = [tokenizer.convert_tokens_to_ids(piece) for piece in pieces]
    function = {"name": tool.name, "parameters": tool.parameters}
    request = ChatCompletionRequest(
        model="m",
        messages=[{"role": "user", "content": "x"}],
        tools=[{"type": "function", "function": function}],
        stream=True,
    )
    kind = ParserManager.get_parser(
        tool_parser_name="qwen3_coder", reasoning_parser_name="qwen3", enable_auto_tools=True
    )
    parser = kind(tokenizer, request.tools)
    begun = process_time()
    for piece, number in zip(pieces, ids, strict=True):
        parser.parse_delta(piece, [number], request, finished=False)
    return (process_time() - begun) / len(pieces) * 1e6


def _split(output: str, token: re.Pattern[str]) -> list[str]:
    """The output as tokens, control tokens whole."""
    parts = re.split("(" + "|".join(map(re.escape, SPECIAL)) + ")", output)
    return [p for part in parts for p in ([part] if part in SPECIAL else token.findall(part))]


def _tokenizer(pieces: list[str]) -> Any:
    vocab = {piece: n for n, piece in enumerate(dict.fromkeys((*SPECIAL, *pieces)))}
    return PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(WordLevel(vocab)), additional_special_tokens=list(SPECIAL)
    )

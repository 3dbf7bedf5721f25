"""The recorded outputs of `canitoolcall` (Apache-2.0): 469 of nine families, from PyPI.

Each is parsed as control tokens and text, the way an engine hands it over, whole and unit by unit;
and as plain text under several cuts where text can tell a marker from its spelling. The package's
own checks judge all of it.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from canitoolcall.checks import run_checks
from canitoolcall.fixtures import Fixture, load_fixtures
from canitoolcall.pytest_plugin import family_for
from canitoolcall.results import CheckResult, Observation, ParsedToolCall, ParseResult, Status

from families import registry
from parsers import grammars
from parsers.detokenizer import Piece
from parsers.machine import TurnParser
from turns.blocks import Reasoning, Text, ToolCall
from turns.events import Usage
from turns.reply import fold
from turns.turn import Tool

FAMILIES = {
    "deepseek-ai/DeepSeek-V3-": "deepseek_v3",
    "deepseek-ai/DeepSeek-V3.1": "deepseek_v3_1",
    "deepseek-ai/DeepSeek-V3.2": "deepseek_v3_2",
    "deepseek-ai/DeepSeek-V4-": "deepseek_v4",
    "deepseek-ai/DeepSeek-V4.1": "deepseek_v4_1",
    "google/gemma-4": "gemma4",
    "zai-org/GLM-4.5": "glm45",
    "zai-org/GLM-4.7": "glm47",
    "zai-org/GLM-5": "glm47",
    "openai/gpt-oss": "gpt_oss",
    "moonshotai/Kimi-K2-Instruct": "kimi_k2",
    "moonshotai/Kimi-K2.": "kimi_k25",
    "moonshotai/Kimi-K3": "kimi_k3",
    "meta-llama/Llama-3": "llama3_json",
    "meta-llama/Llama-4": "llama4_pythonic",
    "mistralai/Mistral-7B": "mistral_v3",
    "mistralai/": "mistral",
    "Qwen/Qwen3-Coder": "qwen3_coder",
    "Qwen/Qwen3-": "qwen3",
    "Qwen/Qwen3.": "qwen3_5",
}
ONLY_TOKENS_TELL = {"kimi/k3-control-marker-text-in-value"}
"""Outputs whose text alone is ambiguous: a value holds, as text, the very mark that ends values."""


EDGES = "policy 1: text loses the whitespace next to a marker, so two texts meet without any"
DIFFERENT = {
    "gemma4/sglang-text-around-call": EDGES,
    "kimi/k2i-vllm-content-after-tool-section": EDGES,
    "llama/l4-truncated-missing-close-bracket": (
        "policy 2: a call that was complete before the cut stays, also in a list without its bracket"
    ),
}
"""Where the package expects something else, and the policy of the corpus that explains it."""

SOFTLY = (Status.PASS, Status.SOFT_PASS)
"""The package passes softly what differs in edge whitespace only: policy 1 again."""


def different(fixture: Fixture) -> list[str]:
    """The checks that our parses of this output do not pass."""
    return [
        f"{row.check} {row.strategy}: {row.detail}"
        for row in verdict(fixture)
        if row.status not in SOFTLY
    ]


@cache
def fixtures() -> tuple[Fixture, ...]:
    return tuple(load_fixtures())


def name_of(fixture: Fixture) -> str:
    """The name of our family for the fixture's model."""
    model = fixture.reference_model
    return next(name for prefix, name in FAMILIES.items() if model.startswith(prefix))


def verdict(fixture: Fixture) -> list[CheckResult]:
    """All checks of the package over all our parses of this output."""
    special = tuple(sorted(family_for(fixture).markers, key=len, reverse=True))
    units = _units(fixture, special)
    whole = _parse(fixture, [units], special)
    streams = {"tokens": _parse(fixture, [[unit] for unit in units], special)}
    if fixture.id not in ONLY_TOKENS_TELL:
        for name, parts in _cuts(fixture.raw_output):
            streams[name] = _parse(fixture, [[Piece(part)] for part in parts], ())
    return run_checks(fixture, family_for(fixture), Observation(nonstream=whole, streams=streams))


def _cuts(text: str) -> Iterator[tuple[str, list[str]]]:
    dice = random.Random(1)
    uneven: list[str] = []
    at = 0
    while at < len(text):
        step = dice.randint(1, 24)
        uneven.append(text[at : at + step])
        at += step
    yield "text", [text]
    yield "halves", [text[: len(text) // 2], text[len(text) // 2 :]]
    yield "uneven", uneven
    yield "letters", list(text)


def _units(fixture: Fixture, special: tuple[str, ...]) -> list[Piece]:
    """The output as control tokens and text. What a value or a thought spells is text."""
    text = fixture.raw_output
    quoted = [spelled for spelled in _spelled(fixture) if any(mark in spelled for mark in special)]
    pattern = "|".join(map(re.escape, sorted(quoted, key=len, reverse=True) + list(special)))
    parts = [part for part in re.split(f"({pattern})", text) if part] if pattern else [text]
    return [Piece(part, special=part in special) for part in parts]


def _spelled(fixture: Fixture) -> Iterator[str]:
    expected = fixture.expected
    if expected is not None:
        yield expected.reasoning_content or ""
        for call in expected.tool_calls:
            yield from _strings(call.arguments)


def _strings(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
            yield json.dumps(value, ensure_ascii=False)[1:-1]
        case dict():
            for each in value.values():
                yield from _strings(each)
        case list():
            for each in value:
                yield from _strings(each)


def _parse(fixture: Fixture, frames: list[list[Piece]], special: tuple[str, ...]) -> ParseResult:
    family = registry.get(name_of(fixture))
    given = [each["function"] for each in fixture.tools]
    parser = TurnParser(
        grammars.get(family.grammar, special=special),
        mint=lambda index, _: f"call_{index}",
        tools=tuple(Tool(f["name"], parameters=dict(f.get("parameters") or {})) for f in given),
        tail=_tail(fixture),
        ids=bool(special),
    )
    events = [event for frame in frames for event in parser.feed(frame)]
    events += parser.finish("length" if fixture.truncated else "stop", Usage())
    blocks = fold(events).blocks
    calls = [block for block in blocks if isinstance(block, ToolCall)]
    return ParseResult(
        content="".join(block.text for block in blocks if isinstance(block, Text)) or None,
        reasoning_content="".join(b.text for b in blocks if isinstance(b, Reasoning)) or None,
        tool_calls=tuple(ParsedToolCall(name=c.name, arguments_raw=c.arguments) for c in calls),
    )


def _tail(fixture: Fixture) -> str:
    """The end of the prompt: as recorded, else what the model's template writes by itself."""
    if fixture.generation_prompt:
        return fixture.generation_prompt
    models = family_for(fixture).reference_models
    found = [m.default_generation_prompt for m in models if m.repo == fixture.reference_model]
    return (found and found[0]) or ""

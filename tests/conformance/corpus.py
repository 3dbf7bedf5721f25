"""The corpus of real faults: where it is, and what a parser makes of one of its cases.

A case is run under every chunking, as a transport of plain text and as one of token ids. Each run
gives the folded reply and the events; the corpus' own judge and the invariants say what is wrong.
"""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from msgspec import Struct

from families import registry
from parsers import grammars
from parsers.detokenizer import Piece
from parsers.grammar import Grammar
from parsers.machine import TurnParser
from turns.blocks import Reasoning, Text, ToolCall
from turns.events import Event, Usage
from turns.reply import Reply, fold
from turns.turn import Tool, ToolChoice

ROOT = Path(__file__).resolve().parents[2]
CORPUS = Path(os.environ.get("TREADLE_CORPUS", ROOT.parent / "shared" / "corpus"))
STOPS = {"tool_calls": "tool_use", "stop": "end", "length": "length"}
Case = dict[str, Any]


def cases() -> list[Case]:
    """All parser cases, in the order of their files; [] where the corpus is not at hand."""
    return [json.loads(path.read_text()) for path in sorted(CORPUS.glob("cases/*.json"))]


def tool(name: str) -> ModuleType:
    """One of the corpus' own tools."""
    spec = importlib.util.spec_from_file_location(f"corpus_{name}", CORPUS / "tools" / f"{name}.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Run(Struct):
    """One case under one chunking and transport."""

    chunking: str
    ids: bool
    events: list[Event]
    reply: Reply


def grammar_of(case: Case) -> Grammar:
    """Raises LookupError where the family's grammar does not exist yet."""
    names = case["parser"]
    family = registry.choose(names["reasoning"] or "", names["tool"] or "")
    return grammars.get(family.grammar, special=tuple(case["special_tokens"]))


def tail_of(case: Case, grammar: Grammar) -> str:
    if case["prompt_tail"] is None and case["start_in_reasoning"]:
        return next(tail for tail, state in grammar.tails if state == "reasoning")
    return case["prompt_tail"] or ""


def runs(case: Case) -> Iterator[Run]:
    """The case under each of its chunkings; by token ids where no cut goes through a token."""
    chunker = tool("chunker")
    grammar = grammar_of(case)
    for chunking in case["chunkings"]:
        chunks = chunker.chunks(case["model_output"], chunking, case["special_tokens"])
        name = chunking if isinstance(chunking, str) else "explicit"
        yield _run(case, grammar, name, [[Piece(chunk)] for chunk in chunks], ids=False)
        frames = _frames(case, chunks)
        if frames is not None:
            yield _run(case, grammar, name, frames, ids=True)


def _run(case: Case, grammar: Grammar, name: str, frames: list[list[Piece]], *, ids: bool) -> Run:
    parser = TurnParser(
        grammar,
        mint=lambda index, _: f"call_{index}",
        tools=tools_of(case),
        tail=tail_of(case, grammar),
        tool_choice=choice_of(case),
        ids=ids,
    )
    events = [event for frame in frames for event in parser.feed(frame)]
    events += parser.finish(case["engine_finish_reason"], Usage())
    return Run(name, ids, events, fold(events))


def choice_of(case: Case) -> ToolChoice:
    given = case["request"].get("tool_choice", "auto")
    if isinstance(given, dict):
        return ToolChoice("named", given["function"]["name"])
    return ToolChoice(given)


def tools_of(case: Case) -> tuple[Tool, ...]:
    given = [tool["function"] for tool in case["tools"]]
    return tuple(Tool(each["name"], parameters=each["parameters"]) for each in given)


def _frames(case: Case, chunks: list[str]) -> list[list[Piece]] | None:
    """The chunks as pieces of tokens; None when a cut goes through a control token."""
    special = set(case["special_tokens"])
    units = tool("chunker").chunks(case["model_output"], "special", sorted(special))
    frames: list[list[Piece]] = []
    at = 0
    for chunk in chunks:
        frame: list[Piece] = []
        rest = chunk
        while rest:
            unit = units[at]
            if len(rest) < len(unit) and unit in special:
                return None
            part, rest = rest[: len(unit)], rest[len(unit) :]
            frame.append(Piece(part, special=unit in special))
            units[at] = unit[len(part) :]
            at += not units[at]
        frames.append(frame)
    return frames


def flat(reply: Reply) -> tuple[str, str, list[tuple[str, str]]]:
    """The reply as the corpus' judge takes it: reasoning, text, complete calls."""
    blocks = reply.blocks
    return (
        "\n\n".join(block.text for block in blocks if isinstance(block, Reasoning)),
        "\n\n".join(block.text for block in blocks if isinstance(block, Text)),
        [(block.name, block.arguments) for block in blocks if isinstance(block, ToolCall)],
    )

"""Reasoning between other marks than <think>: Kimi-VL, Mistral, Seed, Granite's phrases."""

from __future__ import annotations

from parsers.grammar import Reasoning, combine

KIMI_VL = Reasoning(openers=("◁think▷",), closers=("◁/think▷",), spelling=("◁think▷", "◁/think▷"))

MISTRAL = Reasoning(
    openers=("[THINK]", "<think>"),
    closers=("[/THINK]", "</think>"),
    spelling=("[THINK]", "[/THINK]"),
)

# With a budget of nothing the prompt ends in the second opener.
SEED = Reasoning(
    openers=("<seed:think>", "<seed:cot_budget_reflect>"),
    closers=("</seed:think>",),
    spelling=("<seed:think>", "</seed:think>"),
)

# Granite 3.2 writes phrases, which are words of the language: they count only where nothing
# visible stands before them. 3.3 writes tags, and tags around its answer too.
GRANITE = Reasoning(
    openers=("Here is my thought process:", "Here's my thought process:", "<think>"),
    closers=("Here is my response:", "Here's my response:", "</think>"),
    aside=("<response>", "</response>"),
    first=True,
    spelling=("Here is my thought process:\n\n", "\n\nHere is my response:\n\n"),
)

GRAMMARS = {"kimi_vl": combine(KIMI_VL, None)}

"""Reasoning between a pair of tags."""

from __future__ import annotations

from parsers.grammar import Reasoning, combine

THINK = Reasoning(
    openers=("<think>",), closers=("</think>",), spelling=("<think>\n", "\n</think>\n\n")
)

GRAMMARS = {"think": combine(THINK, None), "plain": combine(None, None)}

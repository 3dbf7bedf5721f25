"""Reasoning between a pair of tags."""

from __future__ import annotations

from parsers.grammar import Reasoning

THINK = Reasoning(
    openers=("<think>",), closers=("</think>",), spelling=("<think>\n{text}\n</think>\n\n", "")
)

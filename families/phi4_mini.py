"""Phi-4-mini: `functools[...]` as plain text, or a call in <|tool_call|>."""

from __future__ import annotations

from families.family import Family

FAMILY = Family(
    name="phi4_mini",
    title="Phi-4-mini",
    grammar="phi4_mini",
    template_source="microsoft/Phi-4-mini-instruct (MIT)",
    stop_tokens=("<|end|>", "<|endoftext|>"),
    special_tokens=(
        "<|system|>",
        "<|user|>",
        "<|assistant|>",
        "<|tool|>",
        "<|/tool|>",
        "<|tool_call|>",
        "<|/tool_call|>",
        "<|tool_response|>",
    ),
    architectures=("Phi3ForCausalLM", "Phi4MMForCausalLM"),
    template_marks=("<|tool|>", "<|/tool|>"),
    context_window=131_072,
    tool_aliases=("phi4_mini_json", "phi4"),
)

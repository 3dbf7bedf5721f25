"""Kimi K2 Instruct: calls in a section of special tokens; the id carries the name; no reasoning.

The model's own ids (`functions.NAME:N`) are kept: the template replays them.
"""

from __future__ import annotations

from families.family import Family

FAMILY = Family(
    name="kimi_k2",
    title="Kimi K2 Instruct",
    grammar="kimi_k2",
    template_source="moonshotai/Kimi-K2-Instruct-0905 (modified MIT)",
    stop_tokens=("<|im_end|>",),
    special_tokens=(
        "<|im_user|>",
        "<|im_assistant|>",
        "<|im_system|>",
        "<|im_middle|>",
        "<|tool_calls_section_begin|>",
        "<|tool_calls_section_end|>",
        "<|tool_call_begin|>",
        "<|tool_call_argument_begin|>",
        "<|tool_call_end|>",
    ),
    architectures=("DeepseekV3ForCausalLM", "KimiK2ForCausalLM"),
    template_marks=("<|tool_calls_section_begin|>",),
    reasoning_aliases=("kimi_k2",),
    tool_aliases=("kimi_k2",),
)

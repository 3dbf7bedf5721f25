"""Qwen3-Coder: does not reason, calls as XML parameters."""

from __future__ import annotations

from families.family import Family

FAMILY = Family(
    name="qwen3_coder",
    title="Qwen3-Coder",
    grammar="qwen3_coder",
    template_source="Qwen/Qwen3-Coder-30B-A3B-Instruct: chat_template.jinja",
    stop_tokens=("<|im_end|>", "<|endoftext|>"),
    special_tokens=(
        "<think>",
        "</think>",
        "<tool_call>",
        "</tool_call>",
        "<|im_start|>",
    ),
    architectures=("Qwen3MoeForCausalLM", "Qwen3NextForCausalLM"),
    template_marks=("<function=example_function_name>",),
    context_window=262144,
    reasoning_aliases=("qwen3_coder",),
    tool_aliases=("qwen3_coder", "qwen3_xml", "qwen3"),
)

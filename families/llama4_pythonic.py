"""Llama 4: a list of Python calls, or the JSON its own template asks for."""

from __future__ import annotations

from families.family import Family

FAMILY = Family(
    name="llama4_pythonic",
    title="Llama 4",
    grammar="llama4_pythonic",
    template_source="meta-llama/Llama-4-Scout-17B-16E-Instruct (Llama 4 community licence)",
    stop_tokens=("<|eot|>", "<|eom|>", "<|end_of_text|>"),
    special_tokens=(
        "<|begin_of_text|>",
        "<|header_start|>",
        "<|header_end|>",
        "<|python_start|>",
        "<|python_end|>",
    ),
    architectures=("Llama4ForConditionalGeneration", "Llama4ForCausalLM"),
    template_marks=("<|header_start|>",),
    tool_aliases=("llama4_pythonic", "pythonic", "llama4_json"),
    sees_images=True,
)

"""Llama 3.1 to 3.3: a bare JSON object with `parameters`, sometimes after <|python_tag|>."""

from __future__ import annotations

from families.family import Family

FAMILY = Family(
    name="llama3_json",
    title="Llama 3.1, 3.2, 3.3",
    grammar="llama3_json",
    template_source="meta-llama/Llama-3.3-70B-Instruct (Llama community licence)",
    stop_tokens=("<|eot_id|>", "<|eom_id|>", "<|end_of_text|>"),
    special_tokens=(
        "<|begin_of_text|>",
        "<|start_header_id|>",
        "<|end_header_id|>",
        "<|python_tag|>",
    ),
    architectures=("LlamaForCausalLM", "MllamaForConditionalGeneration"),
    template_marks=("<|start_header_id|>", "Environment: ipython"),
    context_window=131_072,
    tool_aliases=("llama3_json", "llama3", "llama"),
)

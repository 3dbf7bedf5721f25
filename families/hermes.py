"""Hermes 2/3 and Qwen 2.5: JSON in <tool_call> tags, no reasoning.

The template writes the calls as `tojson` puts them; it knows no thinking.
"""

from __future__ import annotations

from families.family import Family

FAMILY = Family(
    name="hermes",
    title="Hermes 2/3, Qwen 2.5",
    grammar="hermes",
    template_source="NousResearch/Hermes-3-Llama-3.1-8B, Qwen/Qwen2.5-7B-Instruct (tool_use)",
    stop_tokens=("<|im_end|>",),
    special_tokens=("<|im_start|>", "<|endoftext|>", "<tool_call>", "</tool_call>"),
    architectures=(
        "Qwen2ForCausalLM",
        "Qwen2MoeForCausalLM",
        "Qwen2VLForConditionalGeneration",
        "Qwen2_5_VLForConditionalGeneration",
        "Qwen3VLForConditionalGeneration",
        "Qwen3VLMoeForConditionalGeneration",
    ),
    template_marks=("<function-name>", "<tool_call>"),
    tool_aliases=("hermes", "qwen25", "qwen"),
)

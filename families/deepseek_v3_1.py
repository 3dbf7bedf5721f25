"""DeepSeek V3.1: one token sets name and arguments apart; thinking by `thinking`.

The template never writes earlier reasoning: history is `</think>` plus the answer.
"""

from __future__ import annotations

from families.family import Family, Replay, ThinkingControls

FAMILY = Family(
    name="deepseek_v3_1",
    title="DeepSeek V3.1",
    grammar="deepseek_v3_1",
    template_source="deepseek-ai/DeepSeek-V3.1 (MIT)",
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
    template_marks=("<｜tool▁calls▁begin｜>", "thinking", "</think>", "'<｜tool▁sep｜>'"),
    thinking=ThinkingControls(
        default="off",
        on={"thinking": True},
        off={"thinking": False},
    ),
    replay=Replay(keep="never"),
    context_window=163_840,
    reasoning_aliases=("deepseek_v3", "deepseek_v3_1"),
    tool_aliases=("deepseek_v3_1", "deepseek_v31", "deepseekv31"),
)

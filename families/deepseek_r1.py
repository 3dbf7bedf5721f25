"""DeepSeek R1 and its distillations: always thinks, V3's tool sections.

The template opens `<think>` itself and drops everything before `</think>` from history.
"""

from __future__ import annotations

from families.family import Family, Replay, ThinkingControls

FAMILY = Family(
    name="deepseek_r1",
    title="DeepSeek R1",
    grammar="deepseek_v3",
    template_source="deepseek-ai/DeepSeek-R1-0528 (MIT)",
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
    template_marks=("<｜tool▁calls▁begin｜>", "```json", "</think>"),
    thinking=ThinkingControls(
        default="on",
    ),
    replay=Replay(keep="never"),
    context_window=163_840,
    reasoning_aliases=("deepseek_r1", "basic"),
    tool_aliases=("deepseek_r1", "deepseek_v3"),
)

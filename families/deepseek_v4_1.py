"""DeepSeek V4.1: V4 with a space after the DSML token and `calls` for a section."""

from __future__ import annotations

from families.family import Family, Replay, ThinkingControls

FAMILY = Family(
    name="deepseek_v4_1",
    title="DeepSeek V4.1",
    grammar="deepseek_v4_1",
    template_source="deepseek-ai/DeepSeek-V4.1-Flash encoding/ (MIT)",
    stop_tokens=("<｜end▁of▁sentence｜>",),
    special_tokens=(
        "<｜begin▁of▁sentence｜>",
        "<｜User｜>",
        "<｜Assistant｜>",
        "<think>",
        "</think>",
        "｜DSML｜",
    ),
    architectures=("DeepseekV41ForCausalLM",),
    template_marks=("｜DSML｜ calls>",),
    thinking=ThinkingControls(
        default="on",
        on={"thinking": True, "enable_thinking": True},
        off={"thinking": False, "enable_thinking": False},
        effort={
            "high": {"reasoning_effort": "high"},
            "xhigh": {"reasoning_effort": "max"},
            "max": {"reasoning_effort": "max"},
        },
    ),
    replay=Replay(keep="tool_loop", agentic={"drop_thinking": False}),
    reasoning_aliases=("deepseek_v41", "deepseek_v4_1"),
    tool_aliases=("deepseek_v41", "deepseek_v4_1", "deepseekv41"),
)

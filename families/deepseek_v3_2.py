"""DeepSeek V3.2: DSML calls in `function_calls`; each value says whether it is a string.

The official encoder is a script; Jinja forms take `thinking` (vLLM) or `enable_thinking` and keep
reasoning from the last user message on.
"""

from __future__ import annotations

from families.family import Family, Replay, ThinkingControls

FAMILY = Family(
    name="deepseek_v3_2",
    title="DeepSeek V3.2",
    grammar="deepseek_v3_2",
    template_source="deepseek-ai/DeepSeek-V3.2 encoding/ (MIT)",
    stop_tokens=("<｜end▁of▁sentence｜>",),
    special_tokens=(
        "<｜begin▁of▁sentence｜>",
        "<｜User｜>",
        "<｜Assistant｜>",
        "<think>",
        "</think>",
        "｜DSML｜",
    ),
    architectures=("DeepseekV32ForCausalLM",),
    template_marks=("｜DSML｜", "function_calls>"),
    thinking=ThinkingControls(
        default="on",
        on={"thinking": True, "enable_thinking": True},
        off={"thinking": False, "enable_thinking": False},
    ),
    replay=Replay(keep="tool_loop"),
    context_window=163_840,
    reasoning_aliases=("deepseek_v3_2", "deepseek_v3"),
    tool_aliases=("deepseek_v3_2", "deepseek_v32", "deepseekv32"),
)

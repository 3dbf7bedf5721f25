"""MiniMax M2 to M2.5: always thinks; invoke elements with named parameters.

The template opens `<think>` and keeps reasoning from the last user message on.
"""

from __future__ import annotations

from families.family import Family, Replay, ThinkingControls

FAMILY = Family(
    name="minimax_m2",
    title="MiniMax M2, M2.1, M2.5",
    grammar="minimax_m2",
    template_source="MiniMaxAI/MiniMax-M2",
    stop_tokens=("[e~[",),
    special_tokens=(
        "]~!b[",
        "]~b]",
        "<minimax:tool_call>",
        "</minimax:tool_call>",
        "<think>",
        "</think>",
    ),
    architectures=("MiniMaxM2ForCausalLM",),
    template_marks=("<minimax:tool_call>",),
    thinking=ThinkingControls(
        default="on",
    ),
    replay=Replay(keep="tool_loop"),
    context_window=196_608,
    reasoning_aliases=("minimax_m2", "minimax"),
    tool_aliases=("minimax_m2",),
)

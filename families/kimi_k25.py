"""Kimi K2 Thinking, K2.5 and K2.6: thinks; a tool section ends reasoning without `</think>`.

The template keeps reasoning from the last answer without calls on.
"""

from __future__ import annotations

from families.family import Family, Replay, ThinkingControls

FAMILY = Family(
    name="kimi_k25",
    title="Kimi K2 Thinking, K2.5, K2.6",
    grammar="kimi_k2",
    template_source="moonshotai/Kimi-K2.6, moonshotai/Kimi-K2-Thinking (modified MIT)",
    stop_tokens=("<|im_end|>",),
    special_tokens=(
        "<|im_user|>",
        "<|im_assistant|>",
        "<|im_system|>",
        "<|im_middle|>",
        "<|tool_calls_section_begin|>",
        "<|tool_calls_section_end|>",
        "<|tool_call_begin|>",
        "<|tool_call_argument_begin|>",
        "<|tool_call_end|>",
        "<think>",
        "</think>",
    ),
    architectures=("KimiK25ForConditionalGeneration", "DeepseekV3ForCausalLM", "KimiK2ForCausalLM"),
    template_marks=("<|tool_calls_section_begin|>", "<think>"),
    thinking=ThinkingControls(
        default="on",
        on={"thinking": True},
        off={"thinking": False},
    ),
    replay=Replay(keep="tool_loop"),
    context_window=262_144,
    reasoning_aliases=("kimi_k25", "kimi_k2"),
    tool_aliases=("kimi_k25", "kimi_k2"),
    sees_images=True,
)

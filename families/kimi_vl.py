"""Kimi-VL Thinking and Kimi k1.5: thoughts between ◁think▷ and ◁/think▷, no tools."""

from __future__ import annotations

from families.family import Family, Replay, ThinkingControls

FAMILY = Family(
    name="kimi_vl",
    title="Kimi-VL Thinking",
    grammar="kimi_vl",
    template_source="moonshotai/Kimi-VL-A3B-Thinking-2506 (MIT)",
    stop_tokens=("<|im_end|>",),
    special_tokens=("<|im_user|>", "<|im_assistant|>", "<|im_system|>", "<|im_middle|>"),
    architectures=("KimiVLForConditionalGeneration",),
    template_marks=("◁think▷",),
    thinking=ThinkingControls(
        default="on",
    ),
    replay=Replay(keep="never"),
    context_window=131_072,
    reasoning_aliases=("kimi",),
    sees_images=True,
)

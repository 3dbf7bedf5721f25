"""Kimi K3: XTML elements for think, response and tools; values carry their type."""

from __future__ import annotations

from families.family import Family, Replay, ThinkingControls

FAMILY = Family(
    name="kimi_k3",
    title="Kimi K3",
    grammar="kimi_k3",
    template_source="moonshotai/Kimi-K3",
    stop_tokens=("<|end_of_msg|>",),
    special_tokens=("<|open|>", "<|close|>", "<|sep|>"),
    architectures=("KimiK3ForConditionalGeneration", "KimiK3ForCausalLM"),
    template_marks=("<|open|>", "<|sep|>"),
    thinking=ThinkingControls(
        default="on",
        on={"thinking": True},
        off={"thinking": False},
        effort={
            "minimal": {"thinking_effort": "low"},
            "low": {"thinking_effort": "low"},
            "medium": {"thinking_effort": "medium"},
            "high": {"thinking_effort": "high"},
            "xhigh": {"thinking_effort": "max"},
            "max": {"thinking_effort": "max"},
        },
    ),
    replay=Replay(keep="always"),
    reasoning_aliases=("kimi_k3",),
    tool_aliases=("kimi_k3",),
    sees_images=True,
)

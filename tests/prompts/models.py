"""Families as the tests need them, whatever the real ones say today."""

from __future__ import annotations

from families.family import Family, Replay, ThinkingControls

THINKING = ThinkingControls(
    default="on", on={"enable_thinking": True}, off={"enable_thinking": False}
)
QWEN3 = Family(
    name="qwen3",
    title="Qwen3",
    grammar="qwen3",
    template_source="",
    stop_tokens=("<|im_end|>", "<|endoftext|>"),
    thinking=THINKING,
    replay=Replay(keep="tool_loop"),
)
KEEPING = Family(
    name="keeping",
    title="A family that keeps all reasoning",
    grammar="qwen3",
    template_source="",
    stop_tokens=("<|im_end|>",),
    thinking=THINKING,
    replay=Replay(keep="always"),
)

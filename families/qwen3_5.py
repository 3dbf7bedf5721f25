"""Qwen 3.5, 3.6 and 3.8: thinking on, Qwen3-Coder's XML calls, images.

The prompt ends in an open `<think>` unless thinking is off. 3.6 and later keep earlier reasoning
when `preserve_thinking` is set; 3.5 ignores the argument.
"""

from __future__ import annotations

from families.family import Family, Replay, ThinkingControls

FAMILY = Family(
    name="qwen3_5",
    title="Qwen 3.5, 3.6, 3.8",
    grammar="qwen3_coder",
    template_source="Qwen/Qwen3.5-9B, Qwen/Qwen3.6-35B-A3B, Qwen/Qwen3.8-27B (Apache-2.0)",
    stop_tokens=("<|im_end|>", "<|endoftext|>"),
    special_tokens=("<|im_start|>", "<tool_call>", "</tool_call>", "<think>", "</think>"),
    architectures=("Qwen3_5ForConditionalGeneration", "Qwen3_5MoeForConditionalGeneration"),
    template_marks=("<function=example_function_name>", "<think>", "enable_thinking"),
    thinking=ThinkingControls(
        default="on",
        on={"enable_thinking": True},
        off={"enable_thinking": False},
    ),
    replay=Replay(keep="tool_loop", agentic={"preserve_thinking": True}),
    context_window=262_144,
    reasoning_aliases=("qwen3_5", "qwen3"),
    tool_aliases=("qwen3_5", "qwen3_coder"),
    sees_images=True,
)

"""Gemma 4: `call:NAME{key:value}` with quote tokens; thoughts in a channel, off by default.

The template strips earlier thoughts.
"""

from __future__ import annotations

from families.family import Family, Replay, ThinkingControls

FAMILY = Family(
    name="gemma4",
    title="Gemma 4",
    grammar="gemma4",
    template_source="google/gemma-4-31B-it (Apache-2.0)",
    stop_tokens=("<turn|>", "<eos>", "<|tool_response>"),
    special_tokens=(
        "<bos>",
        "<|turn>",
        "<|tool>",
        "<tool|>",
        "<|tool_call>",
        "<tool_call|>",
        "<tool_response|>",
        "<|channel>",
        "<channel|>",
        "<|think|>",
        '<|"|>',
    ),
    architectures=("Gemma4ForConditionalGeneration", "Gemma4ForCausalLM"),
    template_marks=("<|tool_call>call:", "<|channel>"),
    thinking=ThinkingControls(
        default="off",
        on={"enable_thinking": True},
        off={"enable_thinking": False},
    ),
    replay=Replay(keep="never"),
    reasoning_aliases=("gemma4", "gemma_4"),
    tool_aliases=("gemma4", "gemma_4"),
    sees_images=True,
)

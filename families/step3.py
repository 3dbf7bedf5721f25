"""Step-3: DeepSeek-like sections of its own tokens around steptml elements; always thinks."""

from __future__ import annotations

from families.family import Family, Replay, ThinkingControls

FAMILY = Family(
    name="step3",
    title="Step 3",
    grammar="step3",
    template_source="stepfun-ai/step3 (Apache-2.0)",
    stop_tokens=("<|EOT|>",),
    special_tokens=(
        "<think>",
        "</think>",
        "<｜tool_calls_begin｜>",
        "<｜tool_calls_end｜>",
        "<｜tool_call_begin｜>",
        "<｜tool_call_end｜>",
        "<｜tool_sep｜>",
    ),
    architectures=("Step3VLForConditionalGeneration", "Step3TextForCausalLM"),
    template_marks=("<steptml:invoke",),
    thinking=ThinkingControls(
        default="on",
    ),
    replay=Replay(keep="never"),
    context_window=65_536,
    reasoning_aliases=("step3",),
    tool_aliases=("step3",),
    sees_images=True,
)

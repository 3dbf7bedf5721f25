"""Step 3.5 and 3.7: Qwen3-Coder's XML; always thinks; one newline after `</think>`."""

from __future__ import annotations

from families.family import Family, Replay, ThinkingControls

FAMILY = Family(
    name="step3p5",
    title="Step 3.5, 3.7",
    grammar="qwen3_coder",
    template_source="stepfun-ai/Step-3.5-Flash (Apache-2.0)",
    stop_tokens=("<|im_end|>", "<|endoftext|>"),
    special_tokens=("<|im_start|>", "<tool_call>", "</tool_call>", "<think>", "</think>"),
    architectures=("Step3p5ForCausalLM",),
    template_marks=("<function=example_function_name>", "<think>", "<|im_start|>tool_response"),
    thinking=ThinkingControls(
        default="on",
        effort={
            "low": {"reasoning_effort": "low"},
            "medium": {"reasoning_effort": "medium"},
            "high": {"reasoning_effort": "high"},
        },
    ),
    replay=Replay(keep="tool_loop", agentic={"preserve_thinking": True}),
    context_window=262_144,
    reasoning_aliases=("step3p5",),
    tool_aliases=("step3p5",),
)

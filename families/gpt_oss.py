"""gpt-oss: harmony channels; a recipient makes a message a call.

Reasoning cannot be turned off: off asks for the lowest effort. The template keeps the analysis of
a tool loop and drops it once a final answer was given.
"""

from __future__ import annotations

from families.family import Family, Replay, ThinkingControls

FAMILY = Family(
    name="gpt_oss",
    title="gpt-oss",
    grammar="gpt_oss",
    template_source="openai/gpt-oss-20b (Apache-2.0); PyPI openai-harmony",
    stop_tokens=("<|return|>", "<|call|>", "<|endoftext|>"),
    special_tokens=("<|start|>", "<|end|>", "<|message|>", "<|channel|>", "<|constrain|>"),
    architectures=("GptOssForCausalLM",),
    template_marks=("<|channel|>", "<|start|>assistant"),
    thinking=ThinkingControls(
        default="on",
        off={"reasoning_effort": "low"},
        effort={
            "minimal": {"reasoning_effort": "low"},
            "low": {"reasoning_effort": "low"},
            "medium": {"reasoning_effort": "medium"},
            "high": {"reasoning_effort": "high"},
            "xhigh": {"reasoning_effort": "high"},
            "max": {"reasoning_effort": "high"},
        },
    ),
    replay=Replay(keep="tool_loop"),
    context_window=131_072,
    reasoning_aliases=("gpt_oss", "openai_gptoss", "harmony"),
    tool_aliases=("gpt_oss", "openai", "harmony"),
)

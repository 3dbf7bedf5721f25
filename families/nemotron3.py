"""NVIDIA Nemotron 3: thinks by default, calls as XML parameters like Qwen3-Coder."""

from __future__ import annotations

from families.family import Family, Replay, ThinkingControls

FAMILY = Family(
    name="nemotron3",
    title="NVIDIA Nemotron 3",
    grammar="qwen3_coder",
    template_source="nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16: chat_template.jinja",
    stop_tokens=("<|im_end|>", "</s>"),
    special_tokens=(
        "<think>",
        "</think>",
        "<tool_call>",
        "</tool_call>",
        "<|im_start|>",
    ),
    architectures=("NemotronHForCausalLM",),
    template_marks=(
        "<function=example_function_name>",
        "<think>",
        "enable_thinking",
        "truncate_history_thinking",
    ),
    thinking=ThinkingControls(
        default="on",
        on={"enable_thinking": True},
        off={"enable_thinking": False},
    ),
    replay=Replay(keep="tool_loop", agentic={"truncate_history_thinking": False}),
    context_window=262144,
    reasoning_aliases=("nemotron_v3", "nemotron_3", "nemotron3", "nemotron_nano", "nano_v3"),
    tool_aliases=("nemotron_nano", "qwen3_coder"),
)

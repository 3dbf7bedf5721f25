"""Qwen 3: thinks by default, calls as JSON in tags (the Hermes way)."""

from __future__ import annotations

from families.family import Family, Replay, ThinkingControls

FAMILY = Family(
    name="qwen3",
    title="Qwen 3",
    grammar="hermes",
    template_source="Qwen/Qwen3-8B: tokenizer_config.json",
    stop_tokens=("<|im_end|>", "<|endoftext|>"),
    special_tokens=(
        "<think>",
        "</think>",
        "<tool_call>",
        "</tool_call>",
        "<|im_start|>",
    ),
    architectures=("Qwen3ForCausalLM", "Qwen3MoeForCausalLM"),
    template_marks=("<function-name>", "<tool_call>", "enable_thinking"),
    thinking=ThinkingControls(
        default="on", on={"enable_thinking": True}, off={"enable_thinking": False}
    ),
    replay=Replay(keep="tool_loop"),
    context_window=40960,
    reasoning_aliases=("qwen3", "qwen3_thinking"),
    tool_aliases=("qwen3_json", "hermes", "qwen25", "qwen"),
)

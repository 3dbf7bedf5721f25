"""Granite 3: a JSON array after <|tool_call|>; thoughts between two phrases."""

from __future__ import annotations

from families.family import Family, Replay, ThinkingControls

FAMILY = Family(
    name="granite3",
    title="Granite 3.0 to 3.3",
    grammar="granite3",
    template_source="ibm-granite/granite-3.2-8b-instruct (Apache-2.0)",
    stop_tokens=("<|end_of_text|>",),
    special_tokens=("<|start_of_role|>", "<|end_of_role|>", "<|tool_call|>"),
    architectures=("GraniteForCausalLM", "GraniteMoeForCausalLM"),
    template_marks=("<|start_of_role|>", "<|tool_call|>"),
    thinking=ThinkingControls(
        default="off",
        on={"thinking": True},
        off={"thinking": False},
    ),
    replay=Replay(keep="never"),
    context_window=131_072,
    reasoning_aliases=("granite",),
    tool_aliases=("granite",),
)

"""Granite 4: Hermes calls under Granite's roles; arguments are sometimes encoded twice."""

from __future__ import annotations

from families.family import Family

FAMILY = Family(
    name="granite4",
    title="Granite 4",
    grammar="hermes",
    template_source="ibm-granite/granite-4.0-h-small (Apache-2.0)",
    stop_tokens=("<|end_of_text|>",),
    special_tokens=("<|start_of_role|>", "<|end_of_role|>", "<tool_call>", "</tool_call>"),
    architectures=("GraniteMoeHybridForCausalLM",),
    template_marks=("<|start_of_role|>", "<tool_call>", "<function-name>"),
    context_window=131_072,
    tool_aliases=("granite4", "hermes"),
)

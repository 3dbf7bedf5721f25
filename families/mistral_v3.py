"""Mistral before v11: a JSON array behind one [TOOL_CALLS], no reasoning."""

from __future__ import annotations

from families.family import Family

FAMILY = Family(
    name="mistral_v3",
    title="Mistral 7B v0.3, Nemo, Large 2",
    grammar="mistral_v3",
    template_source="mistralai/Mistral-7B-Instruct-v0.3, mistral-common (Apache-2.0)",
    stop_tokens=("</s>",),
    special_tokens=(
        "<s>",
        "[INST]",
        "[/INST]",
        "[AVAILABLE_TOOLS]",
        "[/AVAILABLE_TOOLS]",
        "[TOOL_RESULTS]",
        "[/TOOL_RESULTS]",
        "[TOOL_CALLS]",
    ),
    architectures=("MistralForCausalLM", "MixtralForCausalLM"),
    template_marks=("[TOOL_CALLS]",),
    context_window=32_768,
)

"""FunctionGemma: Gemma 3 270M trained on calls; `<escape>` quotes strings."""

from __future__ import annotations

from families.family import Family

FAMILY = Family(
    name="functiongemma",
    title="FunctionGemma",
    grammar="functiongemma",
    template_source="google/functiongemma-270m-it (Gemma terms)",
    stop_tokens=("<end_of_turn>", "<eos>", "<start_function_response>"),
    special_tokens=(
        "<start_of_turn>",
        "<start_function_declaration>",
        "<end_function_declaration>",
        "<start_function_call>",
        "<end_function_call>",
        "<end_function_response>",
        "<escape>",
    ),
    architectures=("Gemma3ForCausalLM",),
    template_marks=("<start_function_call>",),
    context_window=32_768,
    tool_aliases=("functiongemma",),
)

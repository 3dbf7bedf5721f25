"""Mistral since v11: one [TOOL_CALLS] a call, name and [ARGS]; thinks since Magistral.

`reasoning_effort` exists since Mistral Small 4; Magistral is told by its system prompt to think.
Call ids are nine letters or digits: the tokenizer refuses others.
"""

from __future__ import annotations

from families.family import Family, Replay, ThinkingControls

FAMILY = Family(
    name="mistral",
    title="Mistral Small 3.2 and later, Magistral, Devstral",
    grammar="mistral",
    template_source="mistralai/Mistral-Small-4-119B-2603, mistral-common (Apache-2.0)",
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
        "[ARGS]",
        "[CALL_ID]",
        "[THINK]",
        "[/THINK]",
    ),
    architectures=(
        "MistralForCausalLM",
        "Mistral3ForConditionalGeneration",
        "MixtralForCausalLM",
        "Mistral4ForCausalLM",
    ),
    template_marks=("[TOOL_CALLS]", "[ARGS]"),
    thinking=ThinkingControls(
        default="off",
        on={"reasoning_effort": "high"},
        off={"reasoning_effort": "none"},
        effort={
            "low": {"reasoning_effort": "high"},
            "medium": {"reasoning_effort": "high"},
            "high": {"reasoning_effort": "high"},
            "xhigh": {"reasoning_effort": "high"},
            "max": {"reasoning_effort": "high"},
        },
    ),
    replay=Replay(keep="always"),
    reasoning_aliases=("mistral",),
    tool_aliases=("mistral",),
    sees_images=True,
)

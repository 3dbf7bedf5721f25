"""GLM 4.7 and 5: the same elements without newlines; the prompt opens `<think>`.

`clear_thinking=False` makes the template keep all earlier reasoning.
"""

from __future__ import annotations

from families.family import Family, Replay, ThinkingControls

FAMILY = Family(
    name="glm47",
    title="GLM 4.7, 5",
    grammar="glm47",
    template_source="zai-org/GLM-4.7, zai-org/GLM-5 (MIT)",
    stop_tokens=("<|endoftext|>", "<|user|>", "<|observation|>"),
    special_tokens=(
        "[gMASK]",
        "<sop>",
        "<|system|>",
        "<|assistant|>",
        "<think>",
        "</think>",
        "<tool_call>",
        "</tool_call>",
        "<arg_key>",
        "</arg_key>",
        "<arg_value>",
        "</arg_value>",
    ),
    architectures=("Glm4MoeForCausalLM", "GlmMoeDsaForCausalLM", "Glm4MoeLiteForCausalLM"),
    template_marks=("[gMASK]<sop>", "'<tool_call>' + tc.name"),
    thinking=ThinkingControls(
        default="on",
        on={"enable_thinking": True},
        off={"enable_thinking": False},
    ),
    replay=Replay(keep="tool_loop", agentic={"clear_thinking": False}),
    context_window=202_752,
    reasoning_aliases=("glm47", "glm45"),
    tool_aliases=("glm47",),
)

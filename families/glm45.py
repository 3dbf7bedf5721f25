"""GLM 4.5 and 4.6: key and value elements, one a line; thinking on unless turned off.

The prompt ends in `<|assistant|>`; the model writes a newline and `<think>` itself.
"""

from __future__ import annotations

from families.family import Family, Replay, ThinkingControls

FAMILY = Family(
    name="glm45",
    title="GLM 4.5, 4.6",
    grammar="glm45",
    template_source="zai-org/GLM-4.5, zai-org/GLM-4.6 (MIT)",
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
    architectures=("Glm4MoeForCausalLM",),
    template_marks=("[gMASK]<sop>", "'\\n<tool_call>' + tc.name"),
    thinking=ThinkingControls(
        default="on",
        on={"enable_thinking": True},
        off={"enable_thinking": False},
    ),
    replay=Replay(keep="tool_loop"),
    context_window=131_072,
    reasoning_aliases=("glm45",),
    tool_aliases=("glm45", "glm"),
)

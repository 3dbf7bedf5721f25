"""Llama-Nemotron (Super, Ultra, Nano v2): a JSON array in <TOOLCALL>.

Thinking is switched by words in the system prompt, not by a template argument; the template drops
earlier reasoning.
"""

from __future__ import annotations

from families.family import Family, Replay, ThinkingControls

FAMILY = Family(
    name="nemotron_deci",
    title="Llama-Nemotron Super/Ultra, Nemotron Nano v2",
    grammar="nemotron_deci",
    template_source="nvidia/Llama-3_3-Nemotron-Super-49B-v1_5, nvidia/NVIDIA-Nemotron-Nano-9B-v2",
    stop_tokens=("<|eot_id|>", "<|end_of_text|>", "<SPECIAL_12>"),
    special_tokens=("<|start_header_id|>", "<|end_header_id|>", "<SPECIAL_10>", "<SPECIAL_11>"),
    architectures=("DeciLMForCausalLM", "NemotronNASForCausalLM"),
    template_marks=("<TOOLCALL>",),
    thinking=ThinkingControls(
        default="on",
        system_on="/think",
        system_off="/no_think",
    ),
    replay=Replay(keep="never"),
    context_window=131_072,
    reasoning_aliases=("nemotron_deci",),
    tool_aliases=("nemotron_deci", "llama_nemotron_json"),
)

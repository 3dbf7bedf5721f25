"""Seed-OSS: its own think and call tags around Qwen3-Coder's elements; a token budget.

A `thinking_budget` of 0 turns thinking off, -1 leaves it free.
"""

from __future__ import annotations

from families.family import Family, Replay, ThinkingControls

FAMILY = Family(
    name="seed_oss",
    title="Seed-OSS",
    grammar="seed_oss",
    template_source="ByteDance-Seed/Seed-OSS-36B-Instruct (Apache-2.0)",
    stop_tokens=("<seed:eos>",),
    special_tokens=(
        "<seed:bos>",
        "<seed:think>",
        "</seed:think>",
        "<seed:tool_call>",
        "</seed:tool_call>",
        "<seed:cot_budget_reflect>",
        "</seed:cot_budget_reflect>",
    ),
    architectures=("SeedOssForCausalLM",),
    template_marks=("<seed:tool_call>",),
    thinking=ThinkingControls(
        default="on",
        on={"thinking_budget": -1},
        off={"thinking_budget": 0},
        budget_arg="thinking_budget",
    ),
    replay=Replay(keep="always"),
    context_window=524_288,
    reasoning_aliases=("seed_oss",),
    tool_aliases=("seed_oss",),
)

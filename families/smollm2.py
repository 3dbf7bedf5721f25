"""SmolLM2: ChatML, does not reason; its tool prompt asks for JSON in tags, spelled as text."""

from __future__ import annotations

from families.family import Family

FAMILY = Family(
    name="smollm2",
    title="SmolLM2",
    grammar="hermes",
    template_source="HuggingFaceTB/SmolLM2-1.7B-Instruct: tokenizer_config.json",
    stop_tokens=("<|im_end|>", "<|endoftext|>"),
    special_tokens=("<|im_start|>",),
    architectures=("LlamaForCausalLM",),
    template_marks=("SmolLM, trained by Hugging Face",),
    context_window=8192,
)

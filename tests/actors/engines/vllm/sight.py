"""A thin model that sees: Qwen3-VL's shape, random weights, and what its processor is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from families import registry
from prompts.folders import scripted_folder
from prompts.vision.sight import Sight
from tests.actors.engines.vllm.thin import THIN
from turns.frames import Job

FAMILY = "qwen3_5"
PATCH, MERGE = 16, 2
VOCABULARY = 16_512
LEAST, MOST = 4096, 512 * 512
TEXT = {
    "model_type": "qwen3_vl_text",
    "vocab_size": VOCABULARY,
    **THIN,
    "rope_theta": 5_000_000,
    "rope_scaling": {
        "mrope_interleaved": True,
        "mrope_section": [6, 5, 5],
        "rope_type": "default",
    },
}
VISION = {
    "model_type": "qwen3_vl",
    "depth": 2,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_heads": 2,
    "in_channels": 3,
    "patch_size": PATCH,
    "spatial_merge_size": MERGE,
    "temporal_patch_size": 2,
    "out_hidden_size": 64,
    "num_position_embeddings": 256,
    "deepstack_visual_indexes": [0],
    "hidden_act": "gelu_pytorch_tanh",
}
CONFIG = {
    "architectures": ["Qwen3VLForConditionalGeneration"],
    "model_type": "qwen3_vl",
    "torch_dtype": "bfloat16",
    "tie_word_embeddings": True,
    "text_config": TEXT,
    "vision_config": VISION,
}
PROCESSOR = {
    "processor_class": "Qwen3VLProcessor",
    "image_processor_type": "Qwen2VLImageProcessor",
    "size": {"shortest_edge": LEAST, "longest_edge": MOST},
    "patch_size": PATCH,
    "merge_size": MERGE,
    "temporal_patch_size": 2,
    "image_mean": [0.5, 0.5, 0.5],
    "image_std": [0.5, 0.5, 0.5],
}
SHAPES = [
    *((17 + 53 * n, 911 - 47 * n) for n in range(18)),
    (1, 1), (16, 16), (3, 500), (500, 3), (31, 33), (1920, 1080), (4096, 4096), (180, 1), (65, 63),
]  # fmt: skip
"""Sizes of which both sides are asked how many tokens they are."""


def sight_folder(folder: Path) -> Path:
    """A model folder that sees, without weights, with the template that is shipped for it.

    Its tokenizer is the scripted one: vLLM copies a tokenizer again and again as it starts, and one
    of 150,000 words takes it most of a minute.
    """
    scripted_folder(folder, registry.get(FAMILY))
    told = json.loads((folder / "tokenizer_config.json").read_text())
    del told["chat_template"]
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.add_special_tokens(["<|video_pad|>"])
    tokenizer.save(str(folder / "tokenizer.json"))
    names = {"image": "image_pad", "video": "video_pad"}
    names |= {name: name for name in ("vision_start", "vision_end")}
    ids = {f"{one}_token_id": tokenizer.token_to_id(f"<|{name}|>") for one, name in names.items()}
    for name, content in {
        "config.json": CONFIG | ids,
        "preprocessor_config.json": PROCESSOR,
        "video_preprocessor_config.json": PROCESSOR
        | {"video_processor_type": "Qwen3VLVideoProcessor"},
        "tokenizer_config.json": told,
    }.items():
        (folder / name).write_text(json.dumps(content))
    return folder


def as_templated(job: Job) -> list[int]:
    """The prompt as the template writes it: one id where each picture stands."""
    written: list[int] = []
    at = 0
    for one in job.pictures:
        written += [*job.prompt[at : one.at], one.pad]
        at = one.at + one.length
    return [*written, *job.prompt[at:]]


def both_counts(sight: Sight | None, processor: Any) -> list[tuple[int, int, int, int]]:
    """Of each size: width, height, tokens by our arithmetic, and by the model's processor."""
    assert sight is not None
    return [
        (
            width,
            height,
            len(sight.spread(width, height)),
            processor.get_number_of_image_patches(height, width) // MERGE**2,
        )
        for width, height in SHAPES
    ]

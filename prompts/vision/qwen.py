"""Qwen's vision: a picture is cut into patches at about its own size, and four patches are a token.

`smart_resize` of `transformers` (`models/qwen2_vl/image_processing_qwen2_vl.py`), which vLLM's
processors of the Qwen-VL kinds call too: Qwen2-VL, 2.5-VL, 3-VL, 3.5 and what is built on them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from prompts.vision.sight import Sight

MODEL_TYPES = frozenset(
    {
        "qwen2_vl",
        "qwen2_5_vl",
        "qwen3_vl",
        "qwen3_vl_moe",
        "qwen3_5",
        "qwen3_5_moe",
    }
)
_THINNEST = 200


def sight(config: Mapping[str, Any], processor: Mapping[str, Any]) -> Sight:
    """From `config.json` and the image processor's own. KeyError where there is no image token."""
    size = processor.get("size") or {}
    least = processor.get("min_pixels") or size.get("shortest_edge", 56 * 56)
    most = processor.get("max_pixels") or size.get("longest_edge", 28 * 28 * 1280)
    factor = processor.get("patch_size", 14) * processor.get("merge_size", 2)
    pad = int(config["image_token_id"])

    def spread(width: int, height: int) -> list[int]:
        across, down = resized(width, height, factor=factor, least=least, most=most)
        return [pad] * (across // factor * (down // factor))

    return Sight(pad, spread)


def resized(width: int, height: int, *, factor: int, least: int, most: int) -> tuple[int, int]:
    """The size in pixels at which a picture is read: whole tokens, between two areas."""
    long, short = max(width, height), min(width, height)
    if long / short > _THINNEST:
        raise ValueError(f"one side may be {_THINNEST} times the other at most")
    across, down = round(width / factor) * factor, round(height / factor) * factor
    if across * down > most:
        shrink = math.sqrt((height * width) / most)
        across = max(factor, math.floor(width / shrink / factor) * factor)
        down = max(factor, math.floor(height / shrink / factor) * factor)
    elif across * down < least:
        grow = math.sqrt(least / (height * width))
        across = math.ceil(width * grow / factor) * factor
        down = math.ceil(height * grow / factor) * factor
    return across, down

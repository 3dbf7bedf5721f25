"""From a model folder to how its model sees.

A model sees if its `config.json` has a vision part. How many tokens a picture takes is known for
the kinds of processor that have a file here; what another would make of one cannot be counted, so
such a model is served without pictures.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from families.family import Family
from prompts.vision import qwen, scripted
from prompts.vision.sight import Sight

Make = Callable[[Mapping[str, Any], Mapping[str, Any]], Sight]

KINDS: dict[str, Make] = dict.fromkeys(qwen.MODEL_TYPES, qwen.sight)
"""How to make the sight of a model, by `model_type` of its config."""


def sight_of(folder: Path, family: Family, id_of: Callable[[str], int | None]) -> Sight | None:
    """None for a model that does not see, or whose pictures cannot be counted."""
    config = _json(folder / "config.json")
    kind = str(config.get("model_type") or "")
    if kind == scripted.MODEL_TYPE:
        pad = id_of(scripted.PAD)
        return scripted.sight(pad) if family.sees_images and pad is not None else None
    if not config.get("vision_config") or kind not in KINDS:
        return None
    return KINDS[kind](config, _processor(folder))


def _processor(folder: Path) -> dict[str, Any]:
    """The image processor's settings, from the file that has them."""
    own = _json(folder / "processor_config.json").get("image_processor")
    return own if isinstance(own, dict) else _json(folder / "preprocessor_config.json")


def _json(file: Path) -> dict[str, Any]:
    if not file.is_file():
        return {}
    found = msgspec.json.decode(file.read_bytes())
    return found if isinstance(found, dict) else {}

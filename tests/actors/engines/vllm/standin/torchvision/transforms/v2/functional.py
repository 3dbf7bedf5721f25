"""Three functions over tensors whose last dimensions are channels, height and width."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any

import numpy as np
import torch


class InterpolationMode(Enum):
    NEAREST = "nearest"
    NEAREST_EXACT = "nearest-exact"
    BILINEAR = "bilinear"
    BICUBIC = "bicubic"
    BOX = "box"
    HAMMING = "hamming"
    LANCZOS = "lanczos"


def pil_to_tensor(image: Any) -> Any:
    pixels = np.array(image)
    return torch.from_numpy(pixels.reshape(*pixels.shape[:2], -1)).permute(2, 0, 1)


def resize(
    image: Any,
    size: Sequence[int],
    interpolation: InterpolationMode = InterpolationMode.BILINEAR,
    antialias: bool = True,
) -> Any:
    pixels = image.reshape(-1, *image.shape[-3:]).float()
    made = torch.nn.functional.interpolate(
        pixels, size=list(size), mode=interpolation.value, antialias=antialias
    )
    made = made.reshape(*image.shape[:-2], *size)
    return made if image.is_floating_point() else made.round().clamp(0, 255).to(image.dtype)


def normalize(image: Any, mean: Any, std: Any, inplace: bool = False) -> Any:  # noqa: ARG001 -- torchvision's own signature
    shift, scale = (torch.as_tensor(one, dtype=image.dtype).view(-1, 1, 1) for one in (mean, std))
    return (image - shift) / scale


def __getattr__(name: str) -> Callable[..., Any]:
    if name.startswith("__"):
        raise AttributeError(name)

    def absent(*_: Any, **__: Any) -> Any:
        raise NotImplementedError(name)

    return absent

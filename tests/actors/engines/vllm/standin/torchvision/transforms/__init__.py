"""The old names of what `v2.functional` has."""

from __future__ import annotations

from torchvision.transforms.v2.functional import InterpolationMode

__all__ = ["InterpolationMode"]

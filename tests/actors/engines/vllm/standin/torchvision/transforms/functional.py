"""The old place of what `v2.functional` has."""

from __future__ import annotations

from typing import Any

from torchvision.transforms.v2 import functional


def __getattr__(name: str) -> Any:
    return getattr(functional, name)

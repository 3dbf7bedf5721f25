"""Families as the tests need them."""

from __future__ import annotations

from msgspec.structs import replace

from families import registry
from families.family import Replay

QWEN3 = registry.get("qwen3")
KEEPING = replace(QWEN3, name="keeping", title="A family that keeps", replay=Replay(keep="always"))

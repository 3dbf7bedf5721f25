"""How many examples property tests take: few in CI, many with `--hypothesis-profile=fuzz`."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("fuzz", max_examples=3000, deadline=None)

"""Profiles: one YAML file each in `clusters/profiles`, for users to edit.

`clusters/profiles/default.yaml` says what every field means; "" stands for it.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import yaml

from protocols.catalog import Profile, profile

FOLDER = Path(__file__).resolve().parents[1] / "clusters" / "profiles"


@cache
def load(name: str) -> Profile:
    """The profile of that name. Raises ValueError with what is wrong, or with those there are."""
    if not name:
        return Profile()
    path = FOLDER / f"{name}.yaml"
    if path.parent != FOLDER or not path.is_file():
        known = ", ".join(sorted(found.stem for found in FOLDER.glob("*.yaml"))) or "none"
        raise ValueError(f"there is no profile {name!r} in {FOLDER}; there is {known}")
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except yaml.YAMLError as error:
        raise ValueError(f"{path}: not YAML: {error}") from None
    if not isinstance(content, dict):
        raise ValueError(f"{path}: a profile is a mapping of fields")  # noqa: TRY004 - pydantic reads it
    return profile(content, name)

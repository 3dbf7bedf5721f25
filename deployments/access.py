"""From the settings of access to who minds the doors: rules, the admin's key, the audit log."""

from __future__ import annotations

import os
from pathlib import Path

from actors.doorkeeper import Doorkeeper, LookUp, Rules
from deployments.settings import AccessSettings

SHORTEST = 16
"""Characters of an admin key at least; 32 random ones are better."""


def admins(settings: AccessSettings) -> tuple[str, ...]:
    """The admin's keys: one a line of the file, and the environment's. Raises ValueError."""
    found: list[str] = []
    if settings.admin_file:
        found += Path(settings.admin_file).read_text(encoding="utf-8").splitlines()
    if settings.admin_env:
        found.append(os.environ.get(settings.admin_env, ""))
    secrets = tuple(dict.fromkeys(one.strip() for one in found if one.strip()))
    if any(len(secret) < SHORTEST for secret in secrets):
        raise ValueError(
            f"the admin key is shorter than {SHORTEST} characters; make one: openssl rand -hex 32"
        )
    return secrets


def doorkeeper(settings: AccessSettings, look_up: LookUp) -> Doorkeeper:
    rules = Rules(
        required=settings.keys == "required",
        share=settings.shared_prefixes,
        cache_s=settings.cache_s,
        stale_s=settings.stale_s,
    )
    return Doorkeeper(rules, look_up, admins(settings))

"""The secrets that an operator gives for seals: settings, a file, the environment."""

from __future__ import annotations

import os
from pathlib import Path

from deployments.settings import SealSettings


def given(settings: SealSettings) -> tuple[str, ...]:
    """All secrets, the newest first. OSError where the file cannot be read."""
    found = [secret.get_secret_value() for secret in settings.secrets]
    if settings.file:
        found += Path(settings.file).read_text(encoding="utf-8").splitlines()
    if settings.env:
        found += os.environ.get(settings.env, "").split()
    return tuple(dict.fromkeys(secret.strip() for secret in found if secret.strip()))

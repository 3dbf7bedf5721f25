"""The store deployment: owns the embedded Valkey, or names the Redis that was configured."""

from __future__ import annotations

from typing import Any

from deployments.settings import StoreSettings


class StoreDeployment:
    """One replica; ingresses ask it once for the URL and then talk to the store themselves."""
    def __init__(self, settings: dict[str, Any]) -> None:
        self._settings = StoreSettings.model_validate(settings)

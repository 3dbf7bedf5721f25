"""Where Serve listens, as its controller knows it: the application's settings do not say."""

from __future__ import annotations

from typing import Any

import ray
from ray.serve._private.constants import SERVE_CONTROLLER_NAME, SERVE_NAMESPACE


async def listening_host() -> str:
    """The host of the HTTP options; asked once, when an ingress starts."""
    controller: Any = ray.get_actor(SERVE_CONTROLLER_NAME, namespace=SERVE_NAMESPACE)
    options = await controller.get_http_config.remote()
    return str(options.host)

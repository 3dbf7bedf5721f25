# No `from __future__ import annotations` here: see `deployments/app.py`.
"""The streaming tools as a Serve application: `import_path: deployments.tools:build`.

A config without it imports nothing of the extra `tools`.
"""

from typing import Any

from ray import serve
from ray.serve.deployment import Application

from deployments.tool_settings import ToolSettings


def build(settings: ToolSettings) -> Application:
    """The gateway alone, at the application's route prefix. A bad declaration is refused here."""
    try:
        from deployments.tool_gateway import ToolGateway, declared  # noqa: PLC0415 - the extra
    except ImportError as error:
        msg = f"streaming tools need the extra `tools`: uv pip install '.[tools]' ({error})"
        raise ValueError(msg) from None
    declared(settings)
    gateway = serve.deployment(**gateway_options(settings))(serve.ingress()(ToolGateway))
    return gateway.bind(settings.model_dump())


def gateway_options(settings: ToolSettings) -> dict[str, Any]:
    """A call holds its place until it ends or yields; those that drain are ended at `drain_s`."""
    return {
        "name": "tools",
        "num_replicas": settings.replicas,
        "max_ongoing_requests": settings.max_ongoing,
        "graceful_shutdown_timeout_s": settings.drain_s,
        "health_check_timeout_s": 30,
        "ray_actor_options": {"num_cpus": settings.cpus},
    }

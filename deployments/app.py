# No `from __future__ import annotations` here: Serve asks `inspect.isclass` of the builder's
# annotation and would hand it a plain dict instead of checked settings.
"""The Serve application: settings in, deployments out. `import_path: deployments.app:build`."""

from typing import Any

from ray import serve
from ray.serve.config import RequestRouterConfig
from ray.serve.deployment import Application

from deployments import scaling
from deployments.engine import EngineDeployment
from deployments.ingress import IngressDeployment
from deployments.router import RouterDeployment
from deployments.settings import AppSettings, ModelSettings
from deployments.store import StoreDeployment


def build(settings: AppSettings) -> Application:
    """The whole cluster as one application: ingress, router, store, one engine fleet a model."""
    router = serve.deployment(**router_options())(RouterDeployment).bind(
        settings.router.model_dump()
    )
    store = serve.deployment(**store_options())(StoreDeployment).bind(settings.store.model_dump())
    engines = {
        model.name: serve.deployment(**engine_options(model))(EngineDeployment).bind(
            model.model_dump(), settings.parser, router
        )
        for model in settings.models
    }
    ingress = serve.deployment(**ingress_options(settings))(serve.ingress()(IngressDeployment))
    return ingress.bind(settings.model_dump(), router, store, engines)


def engine_name(model: str) -> str:
    """The name of a model's engine deployment: Serve allows no `#` and paths read badly."""
    return "engine-" + "".join(c if c.isalnum() or c in "-._" else "-" for c in model)


def engine_options(model: ModelSettings) -> dict[str, Any]:
    """Capacity is the engine's own to refuse; Serve's limit only bounds a runaway."""
    engine = model.engine
    size: dict[str, Any] = {"num_replicas": engine.replicas}
    if engine.autoscale is not None:
        size = {"autoscaling_config": scaling.options(engine.autoscale)}
    return {
        "name": engine_name(model.name),
        **size,
        "max_ongoing_requests": engine.max_ongoing,
        "graceful_shutdown_timeout_s": engine.drain_s,
        "health_check_period_s": 2,
        "health_check_timeout_s": 30,
        "request_router_config": RequestRouterConfig(
            request_router_class="deployments.pinning:PinningRouter"  # type: ignore[arg-type] # a path is taken too
        ),
        "ray_actor_options": {"num_cpus": engine.cpus, "num_gpus": engine.gpus},
    }


def ingress_options(settings: AppSettings) -> dict[str, Any]:
    ingress = settings.ingress
    return {
        "name": "ingress",
        "num_replicas": ingress.replicas,
        "max_ongoing_requests": ingress.max_ongoing,
        "graceful_shutdown_timeout_s": ingress.drain_s,
        "health_check_timeout_s": 30,
        "ray_actor_options": {"num_cpus": 0},
    }


def router_options() -> dict[str, Any]:
    return {
        "name": "router",
        "num_replicas": 1,
        "max_ongoing_requests": 10_000,  # queued turns wait in a call each
        "health_check_timeout_s": 30,
        "ray_actor_options": {"num_cpus": 0},
    }


def store_options() -> dict[str, Any]:
    return {
        "name": "store",
        "num_replicas": 1,
        "max_ongoing_requests": 100,
        "ray_actor_options": {"num_cpus": 0},
    }

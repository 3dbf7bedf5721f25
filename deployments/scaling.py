"""Serve's autoscaling of engine replicas: its metrics to `router.scaling`, its answer to Serve.

Serve calls `scale` in the controller with what each replica's `record_autoscaling_stats` says.
Serve's own delays are set to nothing (`options`): when to wait is the pure function's to say.
"""

from __future__ import annotations

from typing import Any

from deployments.settings import AutoscaleSettings
from router.scaling import Load, Targets, needed, steady

CALM = "calm_since"
FIELDS = ("turns", "kv_used", "prefill_tokens", "max_turns")


class Scale:
    """The policy; `targets` are fields of `router.scaling.Targets`."""

    def __init__(self, **targets: float) -> None:
        self._targets = Targets(**targets)

    def __call__(self, context: Any) -> tuple[int, dict[str, Any]]:
        metrics = context.aggregated_metrics or {}
        names = set().union(*(metrics.get(field, {}) for field in FIELDS))
        loads = [
            Load(*(float(metrics.get(field, {}).get(name, 0.0)) for field in FIELDS))
            for name in sorted(names, key=str)
        ]
        queued = max((float(v) for v in metrics.get("queued", {}).values()), default=0.0)
        current = context.target_num_replicas
        wanted = needed(loads, queued, self._targets) if loads else current
        since = (context.policy_state or {}).get(CALM)
        number, since = steady(wanted, current, since, context.current_time or 0.0, self._targets)
        low, high = context.capacity_adjusted_min_replicas, context.capacity_adjusted_max_replicas
        return min(max(number, low), high), {CALM: since}


def options(settings: AutoscaleSettings) -> dict[str, Any]:
    """Serve's `autoscaling_config` for a deployment of engines."""
    targets = {
        "turns": settings.turns,
        "kv_used": settings.kv_used,
        "prefill_tokens": settings.prefill_tokens,
        "calm_s": settings.calm_s,
    }
    return {
        "min_replicas": settings.at_least,
        "max_replicas": settings.at_most,
        "initial_replicas": settings.at_least,
        "metrics_interval_s": 2.0,
        "look_back_period_s": 10.0,
        "upscale_delay_s": 0.0,
        "downscale_delay_s": 0.0,
        "policy": {"policy_function": "deployments.scaling:Scale", "policy_kwargs": targets},
    }

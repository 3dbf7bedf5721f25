"""Serve's view of a fleet as the pure policy takes it; Serve's own classes, no cluster."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from deployments.scaling import Scale, options
from deployments.settings import AutoscaleSettings, ModelSettings


def context(now: float, state: dict[str, Any], **metrics: dict[str, float]) -> Any:
    return SimpleNamespace(
        aggregated_metrics=metrics,
        target_num_replicas=2,
        policy_state=state,
        current_time=now,
        capacity_adjusted_min_replicas=1,
        capacity_adjusted_max_replicas=8,
    )


def test_a_queue_grows_the_fleet_and_silence_shrinks_it() -> None:
    scale = Scale(turns=0.5, calm_s=60.0)
    places = {"a": 10.0, "b": 10.0}
    busy = context(1.0, {}, turns={"a": 9.0, "b": 9.0}, max_turns=places, queued={"a": 7, "b": 7})
    assert scale(busy) == (5, {"calm_since": None})
    many = context(1.0, {}, turns={"a": 90.0, "b": 90.0}, max_turns=places)
    assert scale(many)[0] == 8
    number, state = scale(context(100.0, {}, max_turns=places))
    assert (number, state) == (2, {"calm_since": 100.0})
    assert scale(context(160.0, state, max_turns=places))[0] == 1


def test_before_any_replica_has_spoken_nothing_changes() -> None:
    assert Scale()(context(1.0, {}))[0] == 2


def test_the_policy_is_what_serve_is_given() -> None:
    told = {"name": "m", "engine": {"autoscale": {"at_least": 2, "at_most": 6, "turns": 0.5}}}
    autoscale = ModelSettings.model_validate(told).engine.autoscale
    assert autoscale is not None
    config = options(autoscale)
    assert (config["min_replicas"], config["max_replicas"]) == (2, 6)
    assert config["policy"]["policy_function"] == "deployments.scaling:Scale"
    assert Scale(**config["policy"]["policy_kwargs"])._targets.turns == 0.5
    assert ModelSettings.model_validate({"name": "m"}).engine.autoscale is None


def test_bounds_must_be_in_order() -> None:
    with pytest.raises(ValueError, match="below at_least"):
        AutoscaleSettings(at_least=3, at_most=2)

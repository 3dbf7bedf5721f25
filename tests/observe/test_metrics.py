from __future__ import annotations

import pytest
from prometheus_client.parser import text_string_to_metric_families

from observe.metrics import Metrics
from observe.seen import RouterState, TurnEnded, TurnReceived, TurnStarted
from router.router import Router
from tests.observe.conftest import NAMES, tell_all
from turns.events import Usage

M = {"api": "messages", "model": "m"}


@pytest.fixture
def metrics() -> Metrics:
    made = Metrics(models=["m"])
    tell_all(made)
    return made


@pytest.mark.parametrize(
    ("name", "labels", "value"),
    [
        ("requests_refused_total", {"api": "responses", "kind": "invalid_request"}, 1),
        ("turns_received_total", M, 1),
        ("turns_received_total", {"api": "chat", "model": "other"}, 1),
        ("turns_in_flight", {"api": "messages"}, 0),
        ("turns_in_flight", {"api": "chat"}, 0),
        ("turns_ended_total", {**M, "stop": "length"}, 1),
        (
            "turns_failed_total",
            {"api": "chat", "model": "other", "kind": "engine", "streamed": "yes"},
            1,
        ),
        ("turn_seconds_sum", M, 1.0),
        ("ttft_seconds_sum", M, 0.4),
        ("gap_seconds_sum", M, 0.03),
        ("longest_gap_seconds_sum", M, 0.2),
        ("tokens_total", {"model": "m", "kind": "input"}, 100),
        ("tokens_total", {"model": "m", "kind": "cached"}, 64),
        ("tokens_total", {"model": "m", "kind": "output"}, 20),
        ("tokens_total", {"model": "m", "kind": "reasoning"}, 5),
        ("cached_share_sum", {"model": "m"}, 0.64),
        ("events_total", {}, 7),
        ("tool_calls_total", {"model": "m", "outcome": "ready"}, 1),
        ("tool_calls_total", {"model": "m", "outcome": "cut_length"}, 1),
        ("dispatch_lead_seconds_sum", {"model": "m"}, 0.5),
        ("tool_runs_ended_total", {"ending": "predicate_satisfied"}, 1),
        ("tool_run_rows_total", {}, 32),
        ("tool_run_seconds_count", {}, 1),
        ("router_decisions_total", {"why": "overlap"}, 1),
        ("turns_moved_total", {}, 1),
        ("router_seconds_sum", {}, 0.003),
        ("redis_up", {}, 1),
        ("redis_trouble_total", {"operation": "get"}, 1),
        ("redis_away_seconds_total", {}, 1.5),
        ("lanes", {}, 0),
        ("lanes_lost_total", {}, 1),
        ("lane_turns_lost_total", {}, 3),
        ("router_state", {"figure": "blocks"}, 1000),
        ("router_state", {"figure": "kept"}, 45),
    ],
)
def test_figures(metrics: Metrics, name: str, labels: dict[str, str], value: float) -> None:
    assert metrics.registry.get_sample_value(f"treadle_{name}", labels) == pytest.approx(value)


def test_render_is_prometheus_text_and_all_names_are_ours(metrics: Metrics) -> None:
    families = list(text_string_to_metric_families(metrics.render().decode()))
    assert len(families) > 20
    assert all(family.name.startswith("treadle_") for family in families)
    assert all(family.documentation for family in families)
    assert metrics.content_type.startswith("text/plain")


def test_redis_is_down_only_while_it_is_away() -> None:
    metrics = Metrics()
    up = lambda: metrics.registry.get_sample_value("treadle_redis_up")  # noqa: E731 read again and again
    metrics.redis_trouble("get", "one bad record", 1.0, away=False)
    assert up() == 1
    metrics.redis_trouble("get", "gone", 2.0, away=True)
    assert up() == 0
    metrics.redis_recovered(1.0, 3.0)
    assert up() == 1


def test_turns_in_flight_are_those_received_and_not_over() -> None:
    metrics = Metrics()
    for _ in range(3):
        metrics.turn_received(TurnReceived(NAMES, 1.0, stream=True))
    metrics.turn_ended(TurnEnded(NAMES, 2.0, "end", Usage(), 1.0))
    assert metrics.registry.get_sample_value("treadle_turns_in_flight", {"api": "messages"}) == 2


def test_what_was_not_measured_is_not_observed() -> None:
    metrics = Metrics(models=["m"])
    metrics.turn_started(TurnStarted(NAMES, 1.0, 0, 0))
    metrics.turn_ended(TurnEnded(NAMES, 2.0, "end", Usage(), 1.0))
    assert metrics.registry.get_sample_value("treadle_gap_seconds_count", M) is None
    assert metrics.registry.get_sample_value("treadle_cached_share_count", {"model": "m"}) is None


def test_the_routers_own_figures_are_what_its_state_is_made_of() -> None:
    metrics = Metrics()
    metrics.router_state(RouterState(at=1.0, **Router().figures()))
    assert metrics.registry.get_sample_value("treadle_router_state", {"figure": "turns"}) == 0


def test_two_metrics_do_not_share_figures() -> None:
    tell_all(Metrics())
    assert Metrics().registry.get_sample_value("treadle_events_total") == 0

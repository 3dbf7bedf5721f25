from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from observe.exposition import text
from observe.metrics import Metrics
from tests.observe.conftest import tell_all


def samples(figures: bytes) -> dict[tuple[str, str], float]:
    """Values by sample name and process; other labels summed over."""
    found: dict[tuple[str, str], float] = {}
    for family in text_string_to_metric_families(figures.decode()):
        for sample in family.samples:
            key = (sample.name, sample.labels.get("process", ""))
            found[key] = found.get(key, 0) + sample.value
    return found


def test_figures_of_several_processes_are_told_apart() -> None:
    one, two = Metrics(["m"]), Metrics(["m"])
    tell_all(one)
    tell_all(one)
    tell_all(two)
    found = samples(one.render("one", {"two": two.snapshot()}))
    assert found["treadle_turns_received_total", "one"] == 4
    assert found["treadle_turns_received_total", "two"] == 2
    assert found["treadle_ttft_seconds_count", "two"] == 1
    assert found["treadle_redis_up", "one"] == 1


def test_each_metric_is_described_once() -> None:
    one, two = Metrics(), Metrics()
    lines = one.render("one", {"two": two.snapshot()}).decode().splitlines()
    described = [line for line in lines if line.startswith("# TYPE")]
    assert len(described) == len(set(described))


def test_a_process_that_is_alone_has_no_name() -> None:
    metrics = Metrics()
    tell_all(metrics)
    assert b"process=" not in metrics.render()
    assert samples(metrics.render())["treadle_turns_in_flight", ""] == 0


def test_what_cannot_be_read_is_left_out() -> None:
    metrics = Metrics()
    assert text({"one": metrics.snapshot(), "two": b"of another version"}) == text(
        {"one": metrics.snapshot()}
    )

"""Every panel's query has data, over what a server really exposes.

A real Prometheus answers the queries where there is one (`prometheus` on the path, or
`TREADLE_PROMETHEUS`); everywhere else each selector in them must match a sample.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from observe.metrics import Metrics
from observe.seen import TurnEnded, TurnReceived
from scripts.reference import panels
from tests.observe.conftest import NAMES, tell_all
from tests.serving.server import listening
from turns.events import Usage

ROOT = Path(__file__).resolve().parents[2]
DASHBOARD = json.loads((ROOT / "ops" / "grafana" / "treadle.json").read_text())
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
QUERIES = [
    pytest.param(target["expr"], id=f"{panel['title']}: {target['legendFormat']}")
    for panel in PANELS
    for target in panel["targets"]
]
SELECTOR = re.compile(r"(treadle_\w+)(?:\{([^}]*)\})?")
MATCHER = re.compile(r'(\w+)(=~|=)"([^"]*)"')
BY = re.compile(r"by \(([^)]*)\)")
PROGRAM = os.environ.get("TREADLE_PROMETHEUS") or shutil.which("prometheus")


def told() -> Metrics:
    """A process in which everything that can happen has happened."""
    metrics = Metrics(["m"])
    happen(metrics)
    return metrics


def happen(metrics: Metrics) -> None:
    """Everything, once."""
    tell_all(metrics)
    metrics.turn_received(TurnReceived(NAMES, 1.0, stream=True, ignored=("frobnicate",)))
    metrics.turn_ended(TurnEnded(NAMES, 2.0, "end", Usage(), 1.0))
    metrics.prefix_break("m", "changed_tools")
    metrics.turned_away("authentication")
    metrics.lane_depths([1, 3])
    metrics.prepared("m", {"plan": 0.001}, replies=(1, 2), memo=(3, 4))
    metrics.truncated("responses", 2)


@pytest.fixture(scope="module")
def samples() -> list[tuple[str, dict[str, str]]]:
    figures = told().render("one", {"two": told().snapshot()}).decode()
    return [
        (sample.name, sample.labels)
        for family in text_string_to_metric_families(figures)
        for sample in family.samples
    ]


def matches(labels: dict[str, str], wanted: list[tuple[str, str, str]]) -> bool:
    return all(
        (re.fullmatch(value, labels.get(name, "")) is not None)
        if how == "=~"
        else labels.get(name) == value
        for name, how, value in wanted
    )


@pytest.mark.parametrize("query", QUERIES)
def test_every_selector_of_a_panel_matches_a_sample(query: str, samples: Any) -> None:
    selectors = SELECTOR.findall(query)
    assert selectors
    grouped = {name.strip() for found in BY.findall(query) for name in found.split(",")}
    for name, braces in selectors:
        wanted = MATCHER.findall(braces)
        found = [labels for sample, labels in samples if sample == name and matches(labels, wanted)]
        assert found, f"{name}{{{braces}}} has no sample"
        assert grouped <= set(found[0]), f"{name} has no label of {grouped}"


def test_every_metric_is_on_a_panel() -> None:
    every = {metric.name for metric in Metrics().described}
    assert every - panels().keys() == {
        "treadle_events_total",
        "treadle_cached_share",
        "treadle_redis_away_seconds_total",
    }


def test_everything_has_happened(samples: Any) -> None:
    seen = {re.sub(r"_(bucket|sum|count)$", "", name) for name, _ in samples}
    assert {metric.name for metric in Metrics().described} <= seen


def test_panels_have_ids_of_their_own_and_lie_beside_each_other() -> None:
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(ids) == len(set(ids))
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in PANELS]
    assert len(places) == len(set(places))


@contextlib.contextmanager
def prometheus(config: Path, folder: Path) -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        at = f"127.0.0.1:{probe.getsockname()[1]}"
    command = [str(PROGRAM), f"--config.file={config}", f"--web.listen-address={at}"]
    command += [f"--storage.tsdb.path={folder / 'data'}", "--log.level=error"]
    with subprocess.Popen(command, cwd=folder, start_new_session=True) as process:  # noqa: S603
        try:
            yield f"http://{at}"
        finally:
            process.send_signal(signal.SIGTERM)


@contextlib.asynccontextmanager
async def scraped(metrics: Metrics, other: Metrics) -> AsyncIterator[str]:
    """A server of figures that grow from scrape to scrape, as they do."""

    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        happen(metrics)
        body = metrics.render("one", {"two": other.snapshot()})
        headers = [(b"content-type", b"text/plain; version=0.0.4; charset=utf-8")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async with listening(app) as url:
        yield url


@pytest.mark.skipif(PROGRAM is None, reason="no prometheus here; set TREADLE_PROMETHEUS")
async def test_a_real_prometheus_answers_every_panel(tmp_path: Path) -> None:
    content = yaml.safe_load((ROOT / "ops" / "prometheus.yml").read_text())
    content["global"]["scrape_interval"] = "1s"
    async with scraped(told(), told()) as url:
        content["scrape_configs"][0]["static_configs"][0]["targets"] = [url.removeprefix("http://")]
        config = tmp_path / "prometheus.yml"
        config.write_text(yaml.safe_dump(content))
        with prometheus(config, tmp_path) as at:
            async with httpx.AsyncClient(base_url=at) as http:
                missing = [str(param.values[0]) for param in QUERIES]
                until = time.monotonic() + 60
                while missing and time.monotonic() < until:
                    missing = [query for query in missing if not await answered(http, query)]
                    await asyncio.sleep(0.5)
                assert missing == []


async def answered(http: httpx.AsyncClient, query: str) -> bool:
    """Whether a query gives a series, as Grafana would ask it. Raises for one that cannot be read."""
    query = query.replace("$__rate_interval", "30s")
    try:
        answer = await http.get("/api/v1/query", params={"query": query})
    except httpx.TransportError:  # it is not up yet
        return False
    if answer.status_code == 503:
        return False
    assert answer.status_code == 200, answer.text
    return bool(answer.json()["data"]["result"])

"""A rolling update under load: what runs ends where it runs, what comes goes to what is new."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import yaml

from benchmarks.served import Server
from tests.cluster.chaos import Load, Seen
from tests.cluster.control import ENGINE, Control, until
from tests.cluster.driver import Driver

pytestmark = pytest.mark.ray
CLIENTS = 6
UPDATED_WITHIN = 240.0
"""Seconds for two engines, one after the other."""


def changed(file: Path) -> None:
    """Another version of the engines, in the config that was deployed."""
    config: dict[str, Any] = yaml.safe_load(file.read_text())
    (app,) = (app for app in config["applications"] if app["name"] == "treadle")
    app["args"]["models"][0]["engine"]["options"]["kv_blocks"] += 1
    file.write_text(yaml.safe_dump(config))


async def updated(server: Server, control: Control, driver: Driver, seen: Seen) -> None:
    """Load from before the update until its end."""
    old = set(control.replicas(ENGINE))
    load = Load(server.port, 1, seen)
    running = [asyncio.ensure_future(load.client()) for _ in range(CLIENTS)]

    def over() -> bool:
        new = set(control.replicas(ENGINE))
        return len(new) == 2 and not new & old

    try:
        await asyncio.to_thread(until, "turns", lambda: seen.whole, within=60)
        await asyncio.to_thread(driver.ask, "deploy", file=str(server.folder / "cluster.yaml"))
        await asyncio.to_thread(until, "all anew", over, within=UPDATED_WITHIN, every=0.5)
        await asyncio.to_thread(until, "all known", control.whole, within=60, every=0.2)
    finally:
        load.over = True
        await asyncio.gather(*running)


def test_a_rolling_update_cuts_no_stream(server: Server, control: Control, driver: Driver) -> None:
    """Each turn ends where it runs. The only ingress is replaced too: a new turn may be refused."""
    changed(server.folder / "cluster.yaml")
    seen = Seen()
    asyncio.run(updated(server, control, driver, seen))
    assert seen.wrong == []
    assert seen.cut == 0
    assert seen.whole > CLIENTS
    control.assert_idle(60)  # what the replaced ingress told of itself is forgotten after 25 s

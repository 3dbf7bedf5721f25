"""`ray up` with machines of our own: the on-premise file as it is, over SSH, on three hosts.

What differs from an operator's: addresses and key, and that the environment is linked, not made.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.clusters.hosts import ROOT, Host, hosts, missing

ASKED = os.environ.get("TREADLE_HOSTS", "")
WHY_NOT = missing() if ASKED else "two minutes: asked for by TREADLE_HOSTS=1 (just test-hosts)"
pytestmark = [
    pytest.mark.ray,
    pytest.mark.timeout(600),
    pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT),
]
SSH = ["-q", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null"]
WITHIN = 180.0  # three hosts share this machine's cores
LONG = 400


class Cluster:
    """What an operator has: files, SSH to the head, and the addresses that clients ask."""

    def __init__(self, machines: list[Host], folder: Path) -> None:
        self.hosts = machines
        self.folder = folder
        self.told = ""

    def up(self) -> None:
        config = yaml.safe_load((ROOT / "clusters/ray-up/on-premise.yaml").read_text())
        head, *workers = (host.address for host in self.hosts)
        config["cluster_name"] = self.hosts[0].name
        config["provider"] |= {"head_ip": head, "worker_ips": workers}
        config["auth"] = {"ssh_user": "root", "ssh_private_key": str(self.folder / "key")}
        config["file_mounts"] = {"~/treadle": str(ROOT)}
        config["setup_commands"] = [f"ln -sfn {sys.prefix} ~/treadle/.venv"]
        file = self.folder / "up.yaml"
        file.write_text(yaml.safe_dump(config))
        ray = str(Path(sys.executable).with_name("ray"))
        env = {k: v for k, v in os.environ.items() if not k.startswith("RAY_")}
        (self.folder / "operator").mkdir()
        env |= {"HOME": str(self.folder / "operator"), "RAY_USAGE_STATS_ENABLED": "0"}
        command = [ray, "up", "--yes", "--no-config-cache", str(file)]
        done = subprocess.run(
            command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=200, check=False
        )
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]

    def head(self, command: str) -> str:
        """What a command prints, run on the head as the README says."""
        ours = f"cd ~/treadle && .venv/bin/python scripts/node.py {command}"
        there = ["ssh", *SSH, "-i", str(self.folder / "key"), f"root@{self.hosts[0].address}", ours]
        done = subprocess.run(there, capture_output=True, text=True, timeout=90, check=False)
        return done.stdout

    def nodes(self) -> int:
        """Nodes that have joined, as `ray status` counts them, by type or each by its name."""
        self.told = self.head("ray status")
        listed, _, _ = self.told.partition("Pending:")
        return sum(int(n) for n in re.findall(r"^ (\d+) (?:local|node)\S*", listed, re.MULTILINE))

    def deploy(self, engines: int) -> None:
        config = yaml.safe_load((ROOT / "clusters/scripted.yaml").read_text())
        config["http_options"]["host"] = "0.0.0.0"  # noqa: S104 a network of the test's own
        app = config["applications"][0]
        app["args"]["models"][0]["engine"] |= {"replicas": engines, "options": {"step_ms": 20}}
        app["args"] |= {"ingress": {"replicas": 2}, "access": {"exposed": True}}
        app["deployments"] = [
            {"name": name, "max_replicas_per_node": 1} for name in ("ingress", "engine-lab-model")
        ]
        (self.hosts[0].home / "home" / "serve.yaml").write_text(yaml.safe_dump(config))
        assert "successfully" in self.head("serve deploy ~/serve.yaml")

    def engines(self) -> int:
        """Engine replicas that run, 0 while any is on its way."""
        told = yaml.safe_load(self.head("serve status")) or {}
        app = told.get("applications", {}).get("treadle", {})
        states = app.get("deployments", {}).get("engine-lab-model", {}).get("replica_states", {})
        return int(states.get("RUNNING", 0)) if [*states] == ["RUNNING"] else 0


def until(what: str | Callable[[], str], true: Callable[[], bool]) -> None:
    end = time.monotonic() + WITHIN
    while not true():
        missing = what if isinstance(what, str) else what()
        assert time.monotonic() < end, f"not within {WITHIN:.0f} s: {missing}"
        time.sleep(0.5)


def ask(host: Host, tokens: int = 20) -> str:
    """The text of one streamed turn, whole or nothing: raises OSError where it is cut."""
    body = {"model": "lab-model", "max_tokens": tokens, "stream": True}
    said = [{"role": "user", "content": "Count to a thousand."}]
    request = urllib.request.Request(
        f"http://{host.address}:8000/v1/messages",
        data=json.dumps(body | {"messages": said}).encode(),
        headers={"content-type": "application/json"},
    )
    text, last = "", ""
    with urllib.request.urlopen(request, timeout=60) as answer:
        for line in answer:
            if line.startswith(b"data: "):
                event: dict[str, Any] = json.loads(line[6:])
                last = event["type"]
                text += event.get("delta", {}).get("text", "")
    if last != "message_stop":
        raise OSError(f"the stream ended with {last or 'nothing'}")
    return text


def answers(host: Host) -> bool:
    try:
        return bool(ask(host))
    except (OSError, urllib.error.URLError):
        return False


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("hosts")
    with hosts(3, folder) as machines:
        cluster = Cluster(machines, folder)
        cluster.up()
        until(lambda: f"three nodes: {cluster.told}", lambda: cluster.nodes() == len(machines))
        cluster.deploy(engines=3)
        until("three engines", lambda: cluster.engines() == 3)
        yield cluster


def test_every_node_answers_a_streamed_turn(cluster: Cluster) -> None:
    for host in cluster.hosts:
        until(f"a turn at {host.name}", lambda host=host: answers(host))


def test_scaling_down_cuts_no_stream(cluster: Cluster) -> None:
    whole = ask(cluster.hosts[0], LONG)
    with ThreadPoolExecutor(6) as pool:
        streams = [pool.submit(ask, cluster.hosts[n % 3], LONG) for n in range(6)]
        cluster.deploy(engines=2)
        assert {stream.result(120) for stream in streams} == {whole}
    until("two engines", lambda: cluster.engines() == 2)


def test_a_worker_that_is_lost_is_survived(cluster: Cluster) -> None:
    cluster.hosts[2].lose()
    for host in cluster.hosts[:2]:
        until(f"a turn at {host.name}", lambda host=host: answers(host))

from __future__ import annotations

import contextlib
import os
import socket
from pathlib import Path

import pytest

from scripts import serve

ROOT = Path(__file__).resolve().parents[2]


def test_flags_of_serve_are_set_before_ray_and_yield_to_the_callers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("RAY_SERVE_ENABLE_HA_PROXY", raising=False)
    monkeypatch.setenv("RAY_SERVE_THROUGHPUT_OPTIMIZED", "0")
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    env = serve.environment()
    assert env["RAY_SERVE_THROUGHPUT_OPTIMIZED"] == "0"
    assert int(env["RAY_SERVE_REPLICA_GRPC_MAX_MESSAGE_LENGTH"]) >= 256 * 2**20
    assert env["PYTHONPATH"].split(os.pathsep) == [str(ROOT), "/elsewhere"]


@pytest.mark.parametrize(("platform", "proxy"), [("linux", "1"), ("darwin", "0")])
def test_haproxy_is_linuxs(platform: str, proxy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAY_SERVE_ENABLE_HA_PROXY", raising=False)
    monkeypatch.setattr(serve.sys, "platform", platform)
    assert serve.environment()["RAY_SERVE_ENABLE_HA_PROXY"] == proxy


def test_serve_has_ports_of_its_own_beside_another_cluster() -> None:
    """The fallback proxies of two clusters would share theirs without a word."""
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        with contextlib.suppress(OSError):  # another cluster is there already
            other.bind(("127.0.0.1", 8500))
        ports = serve.own_ports()
    assert ports["RAY_SERVE_FALLBACK_PROXY_HTTP_PORT"] != "8500"
    assert len({*ports.values()}) == len(ports) == 4


def test_a_config_is_found_by_name_and_by_path(tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    own.write_text("")
    assert serve.find("scripted") == ROOT / "clusters" / "scripted.yaml"
    assert serve.find(str(own)) == own
    with pytest.raises(SystemExit, match=r"no config 'nope'; there is .*scripted"):
        serve.find("nope")


def test_a_taken_port_is_said(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        config = tmp_path / "c.yaml"
        config.write_text(f"http_options: {{port: {port}}}")
        with pytest.raises(SystemExit, match=f"port {port} is taken"):
            serve.free_port(config)
    assert serve.free_port(config) == port


@pytest.mark.parametrize(
    ("window", "port", "offered"),
    [
        pytest.param(131_072, 8000, "./treadle harness claude ", id="usual"),
        pytest.param(None, 8001, "./treadle harness claude --url http://127.0.0.1:8001", id="port"),
        pytest.param(8_192, 8000, "./run scripted", id="small"),
    ],
)
def test_what_may_be_tried_is_said(window: int | None, port: int, offered: str) -> None:
    url = f"http://127.0.0.1:{port}"
    models = [{"id": "m", "context_window": window}, {"id": "n"}]
    said, curl, harness, console = serve.tries(url, models)
    assert "m, n" in said
    assert f"curl -sN {url}/v1/messages" in curl
    assert harness.strip().startswith(offered)
    assert f"{url}/console" in console

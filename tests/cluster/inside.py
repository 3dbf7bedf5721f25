"""A Ray driver inside a served cluster, in a process of its own: one JSON question a line.

Run as `python -m tests.cluster.inside GCS_ADDRESS`. Ray stays out of the tests' own process, where
its warnings would be errors and its driver would be the only one.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ray
import yaml
from ray import serve
from ray.serve.context import _get_global_client
from ray.serve.schema import ServeDeploySchema

PARSERS = "treadle"
"""The namespace of the parser actors."""

WITHIN = 20.0


def replicas(app: str, deployment: str) -> dict[str, int]:
    """The living replicas of a deployment and their process ids."""
    prefix = f"SERVE_REPLICA::{app}#{deployment}#"
    return {name.removeprefix(prefix): pid for name, pid in actors(prefix, "serve").items()}


def parsers() -> dict[str, int]:
    return actors("parser-", PARSERS)


def actors(prefix: str, namespace: str) -> dict[str, int]:
    """The living actors of that name and their process ids; not those just being replaced."""
    found = {}
    for one in ray.util.list_named_actors(all_namespaces=True):
        if one["namespace"] == namespace and one["name"].startswith(prefix):
            try:
                actor = ray.get_actor(one["name"], namespace=namespace)
                pid = ray.get(actor.__ray_call__.remote(lambda _: os.getpid()), timeout=WITHIN)
            except (ray.exceptions.RayError, ValueError):
                continue
            found[one["name"]] = pid
    return found


def open_parsings() -> int:
    """The turns that parser actors have open."""
    alive = [ray.get_actor(name, namespace=PARSERS) for name in parsers()]
    return sum(ray.get([actor.ready.remote() for actor in alive], timeout=WITHIN))


def deploy(file: str) -> None:
    """What `serve deploy` does with a config file."""
    config = yaml.safe_load(Path(file).read_text())
    _get_global_client().deploy_apps(ServeDeploySchema(**config))


def ask(app: str, deployment: str, method: str, **arguments: Any) -> Any:
    """Call a method of a deployment."""
    handle = HANDLES.get((app, deployment))
    if handle is None:
        handle = HANDLES[app, deployment] = serve.get_deployment_handle(deployment, app)
    return getattr(handle, method).remote(**arguments).result(timeout_s=WITHIN)


HANDLES: dict[tuple[str, str], Any] = {}
QUESTIONS: dict[str, Callable[..., Any]] = {
    "replicas": replicas,
    "parsers": parsers,
    "open_parsings": open_parsings,
    "deploy": deploy,
    "ask": ask,
}


def main() -> None:
    with os.fdopen(os.dup(1), "w") as answers:
        os.dup2(2, 1)  # what Ray prints goes elsewhere
        ray.init(
            address=sys.argv[1],
            namespace="serve",
            log_to_driver=False,
            logging_level=logging.ERROR,
        )
        for line in sys.stdin:
            question = json.loads(line)
            try:
                answer = {"answer": QUESTIONS[question.pop("question")](**question)}
            except Exception as error:  # noqa: BLE001 - whatever it is, the test shall see it
                answer = {"error": f"{type(error).__name__}: {error}"}
            answers.write(json.dumps(answer) + "\n")
            answers.flush()


if __name__ == "__main__":
    main()

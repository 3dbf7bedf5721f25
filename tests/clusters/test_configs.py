"""Every YAML of `clusters/` is checked by who will read it: Serve, our settings, Ray's launcher,
Kubernetes. None of them is brought up here.
"""

from __future__ import annotations

import copy
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from deployments.exposure import exposed
from deployments.settings import AppSettings
from deployments.tool_settings import ToolSettings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # Ray's own, as it is imported
    from ray.autoscaler._private.util import prepare_config, validate_config
    from ray.serve.schema import ServeDeploySchema

    from deployments.app import engine_name

ROOT = Path(__file__).resolve().parents[2]
CLUSTERS = ROOT / "clusters"
SERVE = sorted(CLUSTERS.glob("*.yaml"))
RAY_UP = sorted((CLUSTERS / "ray-up").glob("*.yaml"))
KUBERNETES = sorted((CLUSTERS / "kubernetes").glob("*.yaml"))
CONTAINERFILE = (CLUSTERS / "container" / "Containerfile").read_text()
SETTINGS: dict[str, Any] = {
    "deployments.app:build": AppSettings,
    "deployments.tools:build": ToolSettings,
}
FIXED = {"ingress", "router", "store"}


def stem(path: Path) -> str:
    return path.stem


def documents() -> Iterator[Any]:
    """Manifests of Kubernetes itself; what operators read is looked at by its parts."""
    for path in KUBERNETES:
        for number, document in enumerate(yaml.safe_load_all(path.read_text())):
            if "." in document["apiVersion"].partition("/")[0]:
                continue
            yield pytest.param(document, id=f"{path.stem}-{number}-{document['kind']}")


def rayservice() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((CLUSTERS / "kubernetes/rayservice.yaml").read_text())
    return found


def served(config: dict[str, Any]) -> None:
    """Serve reads it, our settings read its arguments, and what it overrides is there."""
    schema = ServeDeploySchema.model_validate(config)
    for app in schema.applications:
        settings = SETTINGS[app.import_path].model_validate(app.args)
        if isinstance(settings, AppSettings):
            assert exposed(schema.http_options.host, settings.access) == ""
        names = {deployment.name for deployment in app.deployments}
        if names:
            assert names <= FIXED | {engine_name(model.name) for model in settings.models}


@pytest.mark.parametrize("path", SERVE, ids=stem)
def test_serve_and_the_settings_read_a_config(path: Path) -> None:
    served(yaml.safe_load(path.read_text()))


@pytest.mark.parametrize("path", SERVE, ids=stem)
def test_a_config_says_first_what_it_is_and_how_to_start_it(path: Path) -> None:
    head = re.match(r"(#.*\n)+", path.read_text())
    assert head is not None
    assert re.search(rf"\./run( {path.stem})?\b|serve deploy", head.group())


@pytest.mark.parametrize("path", RAY_UP, ids=stem)
def test_ray_up_reads_a_cluster(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    config = prepare_config(yaml.safe_load(path.read_text()))
    validate_config(config)
    assert (Path(config["file_mounts"]["~/treadle"]) / "turns").is_dir()


@pytest.mark.parametrize("path", RAY_UP, ids=stem)
def test_every_node_starts_ray_with_the_flags_of_serve(path: Path) -> None:
    config = yaml.safe_load(path.read_text())
    for role in ("head", "worker"):
        commands = config[f"{role}_start_ray_commands"]
        assert all("scripts/node.py ray" in command for command in commands)
    scripts = set(re.findall(r"(?:scripts|clusters)/[\w./-]+", path.read_text()))
    assert [name for name in scripts if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("document", [*documents()])
def test_kubernetes_reads_a_manifest(document: dict[str, Any]) -> None:
    kubernetes_validate.validate(document, "1.33", strict=True)


def pods() -> Iterator[Any]:
    cluster = rayservice()["spec"]["rayClusterConfig"]
    for name, group in [
        ("head", cluster["headGroupSpec"]),
        *((g["groupName"], g) for g in cluster["workerGroupSpecs"]),
    ]:
        yield pytest.param(group["template"], id=name)


@pytest.mark.parametrize("template", [*pods()])
def test_kubernetes_reads_a_pod_of_the_ray_cluster(template: dict[str, Any]) -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, **copy.deepcopy(template)}
    kubernetes_validate.validate(pod, "1.33", strict=True)


def test_what_kuberay_serves_is_a_config_too() -> None:
    spec = rayservice()["spec"]
    served(yaml.safe_load(spec["serveConfigV2"]))
    assert f'"{spec["rayClusterConfig"]["rayVersion"]}"' in f'"{pinned("ray")}"'


def pinned(name: str) -> str:
    found = re.search(
        rf"^{name}==([\w.+]+)", (ROOT / "requirements/vllm.lock").read_text(), re.MULTILINE
    )
    assert found is not None
    return found.group(1)


def test_a_container_has_the_flags_of_every_other_node() -> None:
    lines = (ROOT / "scripts/serve.env").read_text().splitlines()
    flags = dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))
    for name in (
        "RAY_ADDRESS",
        "RAY_SERVE_DIRECT_INGRESS_MIN_DRAINING_PERIOD_S",
        "RAY_SERVE_PROXY_MIN_DRAINING_PERIOD_S",
    ):
        del flags[name]  # of a machine by itself; the manifests say the other two
    told = dict(re.findall(r"^\s*(?:ENV )?(RAY_\w+)=(\S+)", CONTAINERFILE, re.MULTILINE))
    assert flags.items() <= told.items()


def test_what_a_container_copies_is_there() -> None:
    for sources in re.findall(r"^COPY (?:--\S+ )*(.+) \S+$", CONTAINERFILE, re.MULTILINE):
        assert all((ROOT / source).exists() for source in sources.split())

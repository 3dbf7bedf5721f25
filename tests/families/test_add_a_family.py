"""The worked example of docs/add-a-family.md, taken from the page and run as an installed package."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import families

ROOT = Path(__file__).resolve().parents[2]
KNOWN = f"from {families.__name__} import registry; registry.known()"
PAGE = (ROOT / "docs" / "add-a-family.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, flags=re.DOTALL | re.MULTILINE)


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder of installed packages that holds the example."""
    grammar, family, check = blocks("python")
    (tmp_path / "acme_model.py").write_text(grammar + family)
    (tmp_path / "check_acme.py").write_text(check)
    project = tomllib.loads(blocks("toml")[0])["project"]
    info = tmp_path / f"acme_model-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Name: {project['name']}\nVersion: {project['version']}\n")
    lines = []
    for group, points in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {target}" for name, target in points.items())]
    (info / "entry_points.txt").write_text("\n".join(lines))
    return tmp_path


def run(site: Path, *command: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(site), str(ROOT)])
    return subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, *command],
        env={**os.environ, "PYTHONPATH": path},
        cwd=site,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_the_example_works_as_it_stands(site: Path) -> None:
    done = run(site, "check_acme.py")
    assert done.stdout == "acme works\n", done.stderr


def test_a_name_that_is_taken_is_refused(site: Path) -> None:
    module = site / "acme_model.py"
    module.write_text(module.read_text().replace('name="acme"', 'name="qwen3"'))
    done = run(site, "-c", KNOWN)
    assert "two families are called 'qwen3'" in done.stderr
    assert done.returncode


def test_what_is_no_family_is_refused(site: Path) -> None:
    points = site / "acme_model-0.1.dist-info" / "entry_points.txt"
    points.write_text(points.read_text().replace("acme_model:FAMILY", "acme_model:GRAMMARS"))
    done = run(site, "-c", KNOWN)
    assert "is a dict, not a Family" in done.stderr
    assert done.returncode

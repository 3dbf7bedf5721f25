"""Builds rooms as packages of their own: `wheels.py [--tests DIR] [OUT]`, wheels into OUT (dist).

The rooms are plain top-level packages here, since what runs on a cluster is the checkout; names
as short as `turns` would be rude in somebody else's environment. So each import of a room is moved
under one namespace while its wheel is built: `from turns.events import X` reads `from
treadle.turns.events import X` there. `wheels/wheels.toml` says which rooms go into which wheel.
With `--tests` the tests of these rooms are written to DIR with the same imports.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TABLE = tomllib.loads((ROOT / "wheels" / "wheels.toml").read_text())
NAMESPACE: str = TABLE.pop("namespace")
ROOMS = frozenset(room for wheel in TABLE.values() for room in wheel["rooms"])
TESTS = ("conformance", *sorted(ROOMS))
PAGE = "docs/add-a-family.md"  # its code is run by a test
EXAMPLE = "examples/gateway.py"
UV = Path(sys.executable).with_name("uv")

PYPROJECT = """\
[build-system]
requires = ["uv_build>=0.13,<0.14"]
build-backend = "uv_build"

[project]
name = "{name}"
version = "{version}"
description = "{description}"
readme = "README.md"
requires-python = ">=3.11"
dependencies = {needs}

[tool.uv.build-backend]
module-name = {modules}
namespace = true
"""


class MovedImportError(ValueError):
    """An import of a room in a form that cannot be moved; the message gives file and line."""


def of_room(name: str) -> bool:
    return name.partition(".")[0] in ROOMS


def moved_import(node: ast.Import, source: str) -> str:
    """`import` of rooms, one after the other, binding the same names."""
    parts = []
    for alias in node.names:
        name, bound = alias.name, alias.asname
        if not of_room(name):
            parts.append(ast.unparse(ast.Import([alias])))
        elif bound:
            parts.append(f"import {NAMESPACE}.{name} as {bound}")
        elif "." not in name:
            parts.append(f"from {NAMESPACE} import {name}")
        elif f"{name}." in source.replace(f"import {name}", ""):
            raise MovedImportError(f"line {node.lineno}: write `import {name} as ...`")
        else:  # for what the module does when it is loaded
            parts.append(f"import {NAMESPACE}.{name}")
    return "; ".join(parts)


def moved(source: str) -> str:
    """The same source with every import of a room under the namespace; its lines stay in place."""
    lines = source.splitlines(keepends=True)
    for node in ast.walk(ast.parse(source)):
        at = getattr(node, "lineno", 0) - 1
        if isinstance(node, ast.ImportFrom) and node.level == 0 and of_room(node.module or ""):
            lines[at] = lines[at].replace("from ", f"from {NAMESPACE}.", 1)
        elif isinstance(node, ast.Import) and any(of_room(alias.name) for alias in node.names):
            head = lines[at][: node.col_offset]
            rest = lines[at][node.end_col_offset :]
            lines[at] = head + moved_import(node, source) + rest
    return "".join(lines)


def move(folder: Path, to: Path) -> None:
    """Copy what git knows or would add of a folder, with its imports moved."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", str(folder)]
    named = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in named.splitlines():
        file = ROOT / name
        target = to / file.relative_to(ROOT / folder)
        target.parent.mkdir(parents=True, exist_ok=True)
        if file.suffix != ".py":
            shutil.copyfile(file, target)
            continue
        try:
            target.write_text(moved(file.read_text()))
        except MovedImportError as error:
            sys.exit(f"treadle: {name}, {error}")


def build(name: str, wheel: dict[str, Any], out: Path) -> None:
    with tempfile.TemporaryDirectory() as made:
        stage = Path(made)
        for room in wheel["rooms"]:
            home = stage / "src" / NAMESPACE / room
            move(Path(room), home)
            (home / "py.typed").touch()
        modules = [f"{NAMESPACE}.{room}" for room in wheel["rooms"]]
        facts = {key: wheel[key] for key in ("version", "description", "needs")}
        (stage / "pyproject.toml").write_text(PYPROJECT.format(name=name, modules=modules, **facts))
        shutil.copyfile(ROOT / "wheels" / "README.md", stage / "README.md")
        command = [UV, "build", "--quiet", "--wheel", "--out-dir", out, stage]
        subprocess.run(
            [*map(str, command)], check=True, env=os.environ | {"SOURCE_DATE_EPOCH": "0"}
        )


def move_tests(to: Path) -> None:
    """Write the rooms' tests and what they read to a folder that is made new."""
    shutil.rmtree(to, ignore_errors=True)
    for folder in TESTS:
        move(Path("tests") / folder, to / "tests" / folder)
    (to / EXAMPLE).parent.mkdir()
    for file in ("pyproject.toml", "tests/conftest.py", EXAMPLE):  # how pytest is set up, too
        shutil.copyfile(ROOT / file, to / file)
    own = re.compile(rf"^from ({'|'.join(sorted(ROOMS))})\b", re.MULTILINE)
    (to / PAGE).parent.mkdir()
    (to / PAGE).write_text(own.sub(rf"from {NAMESPACE}.\1", (ROOT / PAGE).read_text()))


def main(arguments: list[str]) -> None:
    tests = None
    if arguments[:1] == ["--tests"]:
        tests, arguments = Path(arguments[1]), arguments[2:]
    out = Path(arguments[0] if arguments else "dist").resolve()
    out.mkdir(parents=True, exist_ok=True)
    for name, wheel in TABLE.items():
        build(name, wheel, out)
    print("treadle: " + ", ".join(f"{name} {wheel['version']}" for name, wheel in TABLE.items()))
    if tests is not None:
        move_tests(tests)


if __name__ == "__main__":
    main(sys.argv[1:])

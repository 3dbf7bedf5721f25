"""A setup: all that it takes to start one harness against one server; and how it is shown."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec import Struct, field

KEY = "TREADLE_API_KEY"
NEEDED = 24_000
"""Tokens of a window below which a harness is no use: its own words alone take over half of it."""

NO_KEY = "none"
"""What stands for the key where the server asks for none: harnesses insist on something."""


class Target(Struct, frozen=True):
    """What a harness is pointed at. `url` without `/v1`; `window` in tokens, None if not known.

    `folder` is where this harness may keep its settings, state and sessions.
    """

    url: str
    model: str
    folder: Path
    window: int | None = None
    max_output: int | None = None


class Setup(Struct, frozen=True):
    """`environment` may refer to other variables as `${NAME}`; `files` by their paths."""

    program: str
    package: str
    environment: dict[str, str]
    arguments: tuple[str, ...] = ()
    files: dict[str, str] = field(default_factory=dict)
    needs: str = ""


Make = Callable[[Target], Setup]


def filled(setup: Setup, outer: Mapping[str, str]) -> dict[str, str]:
    """The environment to start the program in: `outer` under the setup's own."""
    key = outer.get(KEY, "").strip() or NO_KEY
    own = {}
    for name, value in setup.environment.items():
        own[name] = value.replace(f"${{{KEY}}}", key)
    return {**outer, KEY: key, **own}


def shell(setup: Setup) -> str:
    """Lines to paste into a shell: they write the files, set the environment, start the program."""
    lines = [f"# {setup.program}: npm install -g {setup.package}"]
    if setup.needs:
        lines.append(f"# {setup.needs}")
    for name, text in setup.files.items():
        path = shlex.quote(name)
        lines += [f"mkdir -p {shlex.quote(str(Path(name).parent))}", f"cat > {path} <<'TREADLE'"]
        lines += [text.rstrip("\n"), "TREADLE"]
    lines.append(f'export {KEY}="${{{KEY}:-{NO_KEY}}}"')
    for name, value in setup.environment.items():
        said = f'"{value}"' if "${" in value else shlex.quote(value)
        lines.append(f"export {name}={said}")
    lines.append(shlex.join([setup.program, *setup.arguments]))
    return "\n".join(lines)

"""The command: its parts, each a file of its own."""

from __future__ import annotations

import importlib
import importlib.util
import tomllib
from pathlib import Path

import click

ROOT = Path(__file__).resolve().parents[1]

PARTS = {
    "serve": "cli.serve:serve",
    "check": "cli.check:check",
    "models": "cli.models:models",
    "doctor": "cli.doctor:doctor",
    "harness": "cli.harness:harness",
    "keys": "cli.keys:keys",
    "trace": "cli.trace:trace",
    "replay": "cli.replay:replay",
    "parity": "cli.parity:parity",
}
"""Where a command lies. It is imported when it is named, since Ray and Pydantic take seconds."""


class Parts(click.Group):
    """A group whose commands are imported when they are needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for name, place in PARTS.items() if _there(place)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        place = PARTS.get(cmd_name, "")
        if not place or not _there(place):
            return None
        module, _, name = place.partition(":")
        command: click.Command = getattr(importlib.import_module(module), name)
        return command


def _there(place: str) -> bool:
    return importlib.util.find_spec(place.partition(":")[0]) is not None


def _version() -> str:
    """Of the checkout: it is what runs."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return str(project["version"])


@click.group(cls=Parts, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(message="%(version)s", version=_version())
def main() -> None:
    """Serve large language models to agent harnesses from your own cluster."""

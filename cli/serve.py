"""`treadle serve CONFIG`: check a config, then serve it until Ctrl-C."""

from __future__ import annotations

import os
import sys

import click
from rich.markup import escape

from cli.configs import ROOT, find, problems
from cli.output import NO, Output, speaks

SERVE = ROOT / "scripts" / "serve.py"


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("config")
@click.argument("options", nargs=-1, type=click.UNPROCESSED)
@speaks
def serve(out: Output, *, config: str, options: tuple[str, ...]) -> None:
    """Check a config, then serve it until Ctrl-C. OPTIONS go to Ray's `serve run`."""
    try:
        path = find(config)
    except FileNotFoundError as error:
        raise out.fail(str(error)) from None
    with out.working(f"checking {path.name}"):
        found = problems(path)
    for problem in found:
        place = problem.path or path.name
        out.aside.print(escape(f"{place}: {problem.message} {problem.suggestion}".rstrip()))
    if found:
        raise out.fail(f"{path.name} is not served: see above", code=NO)
    # A hand-over, so that signals and the exit code stay.
    os.execv(sys.executable, [sys.executable, str(SERVE), str(path), *options])  # noqa: S606

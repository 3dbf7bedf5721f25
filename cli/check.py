"""`treadle check CONFIG`: everything that is wrong with a config, before anything is started."""

from __future__ import annotations

import click
import msgspec
from rich.console import Console
from rich.markup import escape

from cli.configs import Problem, find, problems
from cli.output import NO, Output, speaks


@click.command()
@click.argument("config")
@speaks
def check(out: Output, *, config: str) -> None:
    """Check a config of clusters/, by its name, or one at a path."""
    try:
        path = find(config)
    except FileNotFoundError as error:
        raise out.fail(str(error)) from None
    with out.working(f"checking {path.name}"):
        found = problems(path)
    value = {"config": str(path), "fine": not found, "problems": msgspec.to_builtins(found)}
    out.give(value, lambda console: _told(console, path.name, found))
    if found:
        raise click.exceptions.Exit(NO)


def _told(console: Console, name: str, found: list[Problem]) -> None:
    if not found:
        console.print(f"[green]{escape(name)} is fine[/green]")
        return
    for problem in found:
        console.print(f"[bold]{escape(problem.path or name)}[/bold]: {escape(problem.message)}")
        if problem.suggestion:
            console.print(f"    {escape(problem.suggestion)}")

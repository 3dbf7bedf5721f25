"""What commands say: a table or a sentence for a person, with `--json` one JSON document."""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import click
from click.core import ParameterSource
from rich.console import Console
from rich.markup import escape
from rich.table import Table

F = TypeVar("F", bound=Callable[..., Any])

PIPE_WIDTH = 240
"""Columns of a table that goes into a file or a pipe, where nothing says how many there are."""

NO, NOT_ASKED = 1, 2
"""Exit codes: the answer is no; it could not be asked."""


class Output:
    """Where a command writes. Results go to standard output, all else to standard error."""

    def __init__(self, *, as_json: bool = False) -> None:
        self.as_json = as_json
        self.person = Console(highlight=False, soft_wrap=True)
        if not self.person.is_terminal:
            self.person.width = PIPE_WIDTH
        self.aside = Console(stderr=True, highlight=False, soft_wrap=True)

    def give(self, value: Any, told: Callable[[Console], None]) -> None:
        """The result: `value` as JSON, or whatever `told` prints of it."""
        if self.as_json:
            sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False) + "\n")
        else:
            told(self.person)

    def table(self, value: Any, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """The result as a table of texts."""

        def told(console: Console) -> None:
            table = Table(*columns, box=None, header_style="bold", pad_edge=False)
            for row in rows:
                table.add_row(*(escape(cell) for cell in row))
            console.print(table)

        self.give(value, told)

    def warn(self, message: str) -> None:
        """Say aside what a person had better know; the command goes on."""
        self.aside.print(f"[yellow]treadle:[/yellow] {escape(message)}")

    def fail(self, message: str, *, code: int = NOT_ASKED) -> click.exceptions.Exit:
        """Say what is wrong; raise what this gives."""
        if self.as_json:
            sys.stdout.write(json.dumps({"error": message}) + "\n")
        else:
            self.aside.print(f"[red]treadle:[/red] {escape(message)}")
        return click.exceptions.Exit(code)

    @contextmanager
    def working(self, what: str) -> Iterator[Callable[[str], None]]:
        """Shows that something takes long; what it gives changes the words. Silent in a pipe."""
        if self.as_json or not self.aside.is_terminal:
            yield lambda _: None
            return
        with self.aside.status(what) as status:
            yield status.update


def speaks(command: F) -> F:
    """Gives a command its `--json` and, as its first argument, where to write."""

    @click.option("--json", "as_json", is_flag=True, help="One JSON document instead of text.")
    @functools.wraps(command)
    def wrapped(*arguments: Any, as_json: bool, **options: Any) -> Any:
        return command(Output(as_json=given("as_json", as_json)), *arguments, **options)

    return wrapped  # type: ignore[return-value] # a decorator keeps what it is given


def given(name: str, value: Any) -> Any:
    """An option's value: what was typed behind the command itself, else what its group was given.

    `treadle doctor --url X prefix TURN` would otherwise ask another server than the one it names.
    """
    context = click.get_current_context()
    group = context.parent.params if context.parent is not None else {}
    if context.get_parameter_source(name) is ParameterSource.COMMANDLINE or name not in group:
        return value
    return group[name]

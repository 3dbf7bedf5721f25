"""`treadle doctor`: this machine and the server on it, looked at; and the prefix doctor."""

from __future__ import annotations

import os

import click
import msgspec
from rich.console import Console
from rich.markup import escape

from cli.configs import find, problems, told
from cli.machine import Finding, looked
from cli.output import NO, Output, speaks
from cli.prefix import prefix
from cli.remote import Remote, RemoteError, reaches

COLOURS = {"ok": "green", "note": "yellow", "bad": "red"}


@click.group(
    invoke_without_command=True, short_help="Look at this machine, or say why a prefix broke."
)
@click.option("--config", default="scripted", show_default=True, help="What shall be served.")
@speaks
@reaches()
@click.pass_context
def doctor(context: click.Context, out: Output, *, remote: Remote, config: str) -> None:
    """Look at this machine: environment, ports, store, GPU, HAProxy, and the server if it is up.

    Exit code 1: something is there that keeps a server from starting.
    """
    if context.invoked_subcommand is not None:
        return
    try:
        path = find(config)
    except FileNotFoundError as error:
        raise out.fail(str(error)) from None
    found: list[Finding] = []
    with out.working("looking at this machine") as show:
        wrong = problems(path)
        if wrong:
            said = f"{len(wrong)} problems, first {wrong[0].path}: {wrong[0].message}"
            found.append(Finding(path.name, "bad", said, f"treadle check {config}"))
        port, store = (8000, "") if wrong else told(path)
        for finding in looked(port, store, os.environ):
            show(finding.what)
            found.append(finding)
        found.append(server(remote))
    out.give(msgspec.to_builtins(found), lambda console: _told(console, found))
    if any(one.state == "bad" for one in found):
        raise click.exceptions.Exit(NO)


def _told(console: Console, found: list[Finding]) -> None:
    for one in found:
        state = f"[{COLOURS[one.state]}]{one.state:4}[/]"
        console.print(f"{state} [bold]{escape(one.what)}[/bold] {escape(one.said)}")
        if one.do:
            console.print(f"       {escape(one.do)}")


def server(remote: Remote) -> Finding:
    """The server, if one is up."""
    try:
        remote.ask("GET", "/health")
        names = ", ".join(str(card["id"]) for card in remote.ask("GET", "/v1/models")["data"])
    except RemoteError as error:
        if error.status:
            return Finding("server", "note", f"{remote.url}: {error}")
        return Finding(
            "server", "note", f"nobody answers at {remote.url}", "treadle serve scripted"
        )
    return Finding("server", "ok", f"{remote.url} serves {names}")


doctor.add_command(prefix)

"""`treadle trace TURN`: what a turn was like, in one place."""

from __future__ import annotations

import urllib.parse
from datetime import UTC, datetime
from typing import Any

import click
from rich.console import Console
from rich.markup import escape

from cli.output import Output, speaks
from cli.remote import Remote, reaches


@click.command()
@click.argument("turn")
@speaks
@reaches()
def trace(out: Output, *, remote: Remote, turn: str) -> None:
    """Show a turn of a server: times, tokens, blocks. TURN is the id of its response."""
    found = remote.ask("GET", f"/v1/treadle/turns/{urllib.parse.quote(turn)}/trace")
    out.give(found, lambda console: told(console, found))


def told(console: Console, turn: dict[str, Any]) -> None:
    """The turn for a person."""
    at = datetime.fromtimestamp(turn["at"], UTC).isoformat(timespec="milliseconds")
    how = turn.get("stop") or f"failed: {turn.get('failed')}"
    said = turn.get("input", 0), turn.get("cached", 0), turn.get("output", 0)
    lines = [
        f"[bold]{turn['turn']}[/bold] {turn['path']} {escape(turn['model'])}, {how}",
        f"  at {at} for {turn.get('seconds', 0):.3f} s, request {escape(turn['request'])}",
        f"  session {escape(turn.get('session', '')) or '-'}, {escape(turn.get('harness', ''))}",
        "  {} tokens in, {} of them cached, {} out".format(*said),
        f"  first event {_time(turn, 'ttft')}, mean gap {_time(turn, 'gap')}",
        f"  longest gap {_time(turn, 'longest_gap')}",
    ]
    for block in turn.get("blocks", ()):
        name = escape(block.get("tool", ""))
        cut = f" cut: {block['cut']}" if block.get("cut") else ""
        lines.append(f"  - {block['kind']} {name} {block['size']} characters{cut}")
    for line in lines:
        console.print(line)


def _time(turn: dict[str, Any], name: str) -> str:
    seconds = turn.get(name, -1.0)
    return "-" if seconds < 0 else f"{seconds * 1000:.0f} ms"

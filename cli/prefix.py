"""`treadle doctor prefix TURN`: why a turn did not begin as the one before it."""

from __future__ import annotations

import urllib.parse
from typing import Any

import click

from cli.output import NO, Output, speaks
from cli.remote import Remote, RemoteError, reaches


@click.command()
@click.argument("turns", nargs=-1, required=True, metavar="[BEFORE] TURN")
@speaks
@reaches()
def prefix(out: Output, *, remote: Remote, turns: tuple[str, ...]) -> None:
    """Compare a turn's prompt with the turn before it in its session, or with one that is named.

    Turns are named by the ids of their responses. Exit code 1: the prefix broke.
    """
    if len(turns) > 2:  # noqa: PLR2004 a pair
        raise out.fail("name one turn, or the earlier one and it")
    *before, turn = turns
    query = {"before": before[-1]} if before else {}
    where = f"/v1/treadle/turns/{urllib.parse.quote(turn)}/prefix"
    try:
        report = remote.ask("GET", where, **query)
    except RemoteError as error:
        if before or "before" not in str(error):
            raise
        raise out.fail(
            f"{turn} is the first turn of its session that is known; to compare it with another: "
            f"treadle doctor prefix OTHER {turn}"
        ) from None
    out.give(report, lambda console: console.print(told(report), markup=False))
    if report["break"] is not None:
        raise click.exceptions.Exit(NO)


def told(report: dict[str, Any]) -> str:
    """The report for a person."""
    found = report["break"]
    if found is None:
        return f"{report['turn']} begins with all the tokens of {report['before']}."
    return (
        f"{report['turn']} leaves {report['before']} at token {found['token']}: {found['cause']} "
        f"in {found['where']}, {found['lost']} cached tokens lost\n"
        f"  before: {found['before']!r}\n   after: {found['after']!r}"
    )

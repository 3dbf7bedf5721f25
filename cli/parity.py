"""`treadle parity RUN_A RUN_B`: whether a harness calls as many tools in two sets of runs.

All of it is `scripts/parity.py`, which reads its own words.
"""

from __future__ import annotations

import click

from scripts.parity import main


@click.command(
    context_settings={"ignore_unknown_options": True},
    add_help_option=False,
    options_metavar="",
    short_help="Compare how many tools two sets of runs called.",
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="RUN_A RUN_B [--json]")
def parity(words: tuple[str, ...]) -> None:
    """Whether a harness calls as many tools in one set of runs as in another."""
    raise click.exceptions.Exit(main(list(words)))

"""`treadle models`: what a server serves."""

from __future__ import annotations

import click

from cli.output import Output, speaks
from cli.remote import Remote, reaches


@click.command()
@speaks
@reaches()
def models(out: Output, *, remote: Remote) -> None:
    """List the models that a server serves, with their limits."""
    cards = remote.ask("GET", "/v1/models")["data"]
    rows = [
        (
            str(card["id"]),
            str(card.get("context_window", "-")),
            str(card.get("max_output_tokens", "-")),
        )
        for card in cards
    ]
    out.table(cards, ("model", "context", "output"), rows)

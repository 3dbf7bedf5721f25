"""`treadle keys add|list|revoke`: the keys of a server, asked of it with the admin's own key."""

from __future__ import annotations

import urllib.parse
from datetime import UTC, datetime
from typing import Any

import click

from access.keys import SCOPES, read
from cli.output import Output, speaks
from cli.remote import ADMIN_KEY, Remote, reaches
from protocols.headers import TIERS

PATH = "/v1/treadle/admin/keys"


@click.group()
def keys() -> None:
    """Make, list and revoke the keys of a server. Needs the admin key: TREADLE_ADMIN_KEY."""


@keys.command()
@click.argument("tenant")
@click.option("--name", default="", help="What the key is for.")
@click.option("--scope", "scopes", multiple=True, type=click.Choice(SCOPES))
@click.option("--model", "models", multiple=True, help="A name or a pattern; else all.")
@click.option("--requests-per-minute", type=click.IntRange(1))
@click.option("--tokens-per-minute", type=click.IntRange(1))
@click.option("--concurrent-turns", type=click.IntRange(1))
@click.option(
    "--most-priority",
    type=click.IntRange(-(2**31), 2**31 - 1),
    help="The highest priority its turns may have.",
)
@click.option(
    "--most-tier", type=click.IntRange(-TIERS, TIERS), help="The highest tier its turns may be in."
)
@click.option("--days", type=click.FloatRange(0), default=0.0, help="It expires after so many.")
@speaks
@reaches(ADMIN_KEY)
def add(
    out: Output,
    *,
    remote: Remote,
    scopes: tuple[str, ...],
    models: tuple[str, ...],
    **wanted: Any,
) -> None:
    """Make a key for TENANT. It is shown once; the server keeps a digest of it."""
    body = {name: value for name, value in wanted.items() if value is not None}
    body |= {"models": list(models)} | ({"scopes": list(scopes)} if scopes else {})
    made = remote.ask("POST", PATH, body)
    out.aside.print(f"key {made['id']} of tenant {made['tenant']}; it is not shown again:")
    out.give(made, lambda _: click.echo(made["key"]))
    out.aside.print("Its holder puts it into TREADLE_API_KEY, or wherever his program wants a key.")


@keys.command("list")
@speaks
@reaches(ADMIN_KEY)
def listed(out: Output, *, remote: Remote) -> None:
    """List all keys, without what opens anything."""
    found = remote.ask("GET", PATH)["keys"]
    rows = [
        (
            key["id"],
            key["tenant"],
            key["name"],
            ",".join(key["scopes"]),
            ",".join(key["models"]) or "all",
            " ".join(f"{value} {name}" for name, value in key["allowance"].items()) or "-",
            _state(key),
        )
        for key in found
    ]
    columns = ("id", "tenant", "name", "scopes", "models", "limits", "state")
    out.table(found, columns, rows)
    if not found:
        out.aside.print("There is no key yet: treadle keys add TENANT")


@keys.command()
@click.argument("key_id")
@speaks
@reaches(ADMIN_KEY)
def revoke(out: Output, *, remote: Remote, key_id: str) -> None:
    """End a key for ever, by its id. Other ingresses follow within access.cache_s."""
    if (known := read(key_id)) is not None:  # the key itself, which shall not get into a path
        key_id = known[0]
    gone = remote.ask("DELETE", f"{PATH}/{urllib.parse.quote(key_id, safe='')}")
    out.give(gone, lambda console: console.print(f"{gone['id']} of {gone['tenant']} is revoked"))


def _state(key: dict[str, Any]) -> str:
    if key["revoked"]:
        return f"revoked {_day(key['revoked'])}"
    if not key["expires"]:
        return "good"
    over = key["expires"] <= datetime.now(UTC).timestamp()
    return f"{'expired' if over else 'until'} {_day(key['expires'])}"


def _day(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M")

"""`treadle harness NAME`: start a harness against this server, or print how it is done."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import click
import msgspec

from cli.harnesses.registry import HARNESSES
from cli.harnesses.setup import NEEDED, Setup, Target, filled, shell
from cli.output import Output, speaks
from cli.remote import Remote, RemoteError, reaches


@click.command(
    context_settings={"ignore_unknown_options": True},
    short_help="Start a harness against a server, or print how.",
)
@click.argument("name", metavar="NAME", type=click.Choice(sorted(HARNESSES)))
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.option("--model", help="A model that the server serves; else its first one.")
@click.option("--print", "show", is_flag=True, help="Print lines for a shell and start nothing.")
@click.option(
    "--folder",
    type=click.Path(path_type=Path),
    default=Path.home() / ".treadle" / "harness",
    help="Where harnesses with a home of their own have it.",
)
@speaks
@reaches()
def harness(
    out: Output,
    *,
    remote: Remote,
    name: str,
    arguments: tuple[str, ...],
    model: str | None,
    show: bool,
    folder: Path,
) -> None:
    """Start a harness against the server, or print how (--print, --json). NAME is claude, codex,
    openclaw, opencode or qwen.

    What stands after the name, or after `--`, goes to the harness: treadle harness claude -- -p hi
    """
    target = target_of(remote, model, (folder / name).resolve())
    if target.window and target.window < NEEDED:
        out.warn(
            f"{target.model} reads no more than {target.window:,} tokens, of which {name} fills "
            "over half before you say a word: it will hardly work"
        )
    setup = HARNESSES[name](target)
    setup = msgspec.structs.replace(setup, arguments=(*setup.arguments, *arguments))
    if show or out.as_json:
        out.give(msgspec.to_builtins(setup), lambda _: click.echo(shell(setup)))
        return
    program = shutil.which(setup.program)
    if program is None:
        raise out.fail(f"{setup.program} is not installed: npm install -g {setup.package}")
    write(setup)
    os.execve(program, [program, *setup.arguments], filled(setup, os.environ))  # noqa: S606 a hand-over


def write(setup: Setup) -> None:
    """Put the setup's files where they belong, readable by their owner alone."""
    for name, text in setup.files.items():
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.write_text(text, encoding="utf-8")
        path.chmod(0o600)


def target_of(remote: Remote, model: str | None, folder: Path) -> Target:
    """What the server says of the model. Raises RemoteError naming those that it serves."""
    cards: list[dict[str, Any]] = remote.ask("GET", "/v1/models")["data"]
    names = [str(card["id"]) for card in cards]
    chosen = next((card for card in cards if model in {None, card["id"]}), None)
    if chosen is None:
        raise RemoteError(f"{remote.url} serves no {model!r}; it serves {', '.join(names)}")
    window = chosen.get("context_window")
    return Target(remote.url, str(chosen["id"]), folder, window, chosen.get("max_output_tokens"))

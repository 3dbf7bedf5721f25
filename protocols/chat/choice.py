"""Choices: several replies to one request (`n`), each a turn of its own with the same prompt."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from turns.turn import Turn


class Choice(Struct, frozen=True):
    """Which choice a turn is, and the id of the turn that all of them answer ("" for one alone)."""

    index: int = 0
    completion: str = ""


ALONE = Choice()


def choice_of(turn: Turn) -> Choice:
    completion = turn.echo.get("completion", "")
    return Choice(turn.echo["choice"], completion) if completion else ALONE


def many(turn: Turn) -> list[Turn]:
    """The turns of a request, one a choice. The same seed would make the same reply of them all."""
    seed = turn.sampling.seed
    made = []
    for index in range(turn.echo.get("choices", 1)):
        own = turn.sampling if seed is None else replace(turn.sampling, seed=_seed(seed, index))
        echo = turn.echo | {"choice": index, "completion": turn.id}
        made.append(replace(turn, id=f"{turn.id}{index:02d}", sampling=own, echo=echo))
    return made


def _seed(seed: int, index: int) -> int:
    """Kept within 64 bits."""
    return (seed + index + 2**63) % 2**64 - 2**63

"""What is known of a model's sight."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct


class Sight(Struct, frozen=True):
    """How a model takes a picture.

    `pad` is the token that its template writes where one stands. `spread(width, height)`, in
    pixels, gives the tokens that stand there once the engine has looked; ValueError for a shape
    that the model does not take.
    """

    pad: int
    spread: Callable[[int, int], list[int]]

from __future__ import annotations

from typing import Any

import pytest

from actors.engines.scripted.placeholders import KNOWN, fill, fill_deep, names_in, values_of
from actors.engines.scripted.scene import look
from tests.actors.engines.scripted.toy import answered, ask, called, tool

VALUES: dict[str, str | int] = {"last_user": "do it", "n": 3, "count": "12"}


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("{last_user}!", "do it!"),
        ("{last_user:2}", "do"),
        ("{n}-{n}", "3-3"),
        ("{{n}}", "{n}"),
        ('{"n": 1} { n } {}', '{"n": 1} { n } {}'),
    ],
)
def test_fill(text: str, filled: str) -> None:
    assert fill(text, VALUES) == filled


@pytest.mark.parametrize(
    ("value", "filled"),
    [
        ("{n}", 3),
        ("{count:int}", 12),
        ("{count}", "12"),
        ({"{count}": ["{n}", "n={n}", True]}, {"12": [3, "n=3", True]}),
    ],
)
def test_fill_deep_makes_numbers_of_whole_placeholders(value: Any, filled: Any) -> None:
    assert fill_deep(value, VALUES) == filled


def test_names_are_found_however_deep() -> None:
    assert [*names_in([{"a": ["{x}", 1]}, "{y:3} {{z}}"])] == ["x", "y"]


def test_every_known_name_has_a_value() -> None:
    scene = look(ask("q", called(), answered("r"), tools=[tool("bash")], session="s"))
    values = values_of(scene, {"mine": "m"})
    assert set(values) == KNOWN | {"mine"}
    assert (values["tool"], values["tool_result"], values["session"]) == ("bash", "r", "s")
    assert set(values_of(look(None), {})) == KNOWN

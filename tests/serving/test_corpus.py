"""The corpus's protocol cases against the running server, in both modes, property by property."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from tests.protocols import apis
from tests.serving.corpus import prompt_properties, properties
from tests.serving.corpus.cases import OTHER_ROOMS, Case, cases, server_of
from tests.serving.corpus.judged import PROPERTIES, Judged
from tests.serving.corpus.players import play


def judged() -> list[Any]:
    found = [
        pytest.param(case, fields, id=f"{case['id']}-{fields['p']}")
        for case in cases()
        for fields in case["expected"]
    ]
    if not found:
        absent = pytest.mark.skip(reason=f"no corpus in {apis.CORPUS}; set TREADLE_CORPUS")
        return [pytest.param({}, {}, marks=absent, id="absent")]
    return found


@pytest.mark.parametrize(("case", "fields"), judged())
async def test_property(case: Case, fields: dict[str, Any]) -> None:
    if case["api"] in OTHER_ROOMS:
        pytest.skip(OTHER_ROOMS[case["api"]])
    async with server_of(case) as server:
        played = await play(server, case)
        assert played.steps or played.statuses or played.facts
        await judge(Judged(case, played, fields, server))


async def judge(this: Judged) -> None:
    """Assert the property. One that nobody knows fails."""
    name = this.fields["p"]
    assert name in PROPERTIES, f"nobody knows how to judge {name!r}"
    found = PROPERTIES[name](this)
    if inspect.isawaitable(found):
        await found


def test_the_tables_are_filled() -> None:
    """Properties are known by being imported."""
    assert PROPERTIES["prompt_contains"] is prompt_properties.prompt_contains
    assert PROPERTIES["http_status"] is properties.http_status

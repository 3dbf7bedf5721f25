"""The corpus's protocol cases against the running server, in both modes, property by property."""

from __future__ import annotations

from typing import Any

import pytest

from tests.protocols import apis
from tests.serving.corpus.cases import OTHER_ROOMS, Case, cases, server_of
from tests.serving.corpus.players import play
from tests.serving.corpus.properties import Judged, judge


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

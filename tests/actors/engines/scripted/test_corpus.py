"""Whatever the protocol corpus asks an engine to say, this engine says, cut as it is there."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from actors.engines.scripted.compose import Wire, script
from actors.engines.scripted.reply import plan
from actors.engines.scripted.scenario import read
from actors.engines.scripted.scene import look
from tests.actors.engines.scripted.corpus import rule
from tests.actors.engines.scripted.toy import ask, decode, encode, job, write

CORPUS = Path(os.environ.get("TREADLE_CORPUS", Path(__file__).parents[5] / "shared" / "corpus"))


def outputs() -> list[Any]:
    params = []
    for path in sorted((CORPUS / "protocol_cases").glob("*.json")):
        output = msgspec.json.decode(path.read_bytes()).get("engine_output")
        if output is not None:
            params.append(pytest.param(output, id=path.stem))
    reason = f"no corpus under {CORPUS} (TREADLE_CORPUS)"
    return params or [pytest.param({}, id="none", marks=pytest.mark.skip(reason=reason))]


@pytest.mark.parametrize("output", outputs())
def test_every_engine_output_of_the_corpus(output: dict[str, Any]) -> None:
    scenario = read({"rules": [rule(output, list)]})
    made = script(plan(scenario, look(ask("hi"))), job(ask("hi")), Wire(write, encode), room=10_000)
    deltas = output.get("deltas")
    if not isinstance(deltas, list):
        assert made.ids
        return
    texts = [one if isinstance(one, str) else one["text"] for one in deltas]
    assert made.cuts is not None
    starts = [0, *made.cuts]
    pieces = [decode(made.ids[a:b]) for a, b in zip(starts, made.cuts, strict=False)]
    assert pieces[: len(texts)] == texts
    assert made.finish == output.get("finish_reason", "stop")
    assert made.cached == output.get("cached_tokens")
    assert (made.fault is not None) is ("fail_after" in output)

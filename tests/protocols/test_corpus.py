"""The corpus's protocol cases, property by property, as far as the room alone can judge them.

What needs the prompt, the engine or the HTTP server is skipped by name; those rooms judge it.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.protocols import apis, corpus_runs
from tests.protocols.corpus_properties import PROPERTIES, Judged
from tests.protocols.corpus_runs import Case


def judged() -> list[Any]:
    found = [
        pytest.param(case, fields, id=f"{case['id']}-{fields['p']}")
        for case in corpus_runs.cases()
        for fields in case["expected"]
    ]
    if not found:
        absent = pytest.mark.skip(reason=f"no corpus in {apis.CORPUS}; set TREADLE_CORPUS")
        return [pytest.param({}, {}, marks=absent, id="absent")]
    return found


@pytest.mark.parametrize(("case", "fields"), judged())
def test_property(case: Case, fields: dict[str, Any]) -> None:
    check = PROPERTIES.get(fields["p"])
    if check is None:
        pytest.skip(f"{fields['p']} needs a prompt, an engine or a server")
    runs = corpus_runs.runs(case)
    if not runs:
        pytest.skip("a request of several steps, or one that is refused, needs a server")
    check(Judged(case, runs, fields))

from __future__ import annotations

import pytest

from tests.conformance.corpus import CORPUS, Case, cases, grammar_of, runs
from tests.conformance.states import KNOWN_BROKEN, NOT_APPLICABLE, UNIMPLEMENTED
from tests.conformance.verdict import problems

CASES = cases()
pytestmark = pytest.mark.skipif(not CASES, reason=f"no corpus at {CORPUS}: set TREADLE_CORPUS")


def implemented(case: Case) -> bool:
    try:
        grammar_of(case)
    except LookupError:
        return False
    return True


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_a_case_under_every_chunking_and_transport(case: Case) -> None:
    if case["id"] in NOT_APPLICABLE:
        pytest.skip(NOT_APPLICABLE[case["id"]])
    if case["family"] in UNIMPLEMENTED:
        pytest.skip(f"the grammar of {case['family']} is still to be written")
    wrong = [
        f"{run.chunking} {'ids' if run.ids else 'text'}: {problem}"
        for run in runs(case)
        for problem in problems(case, run)
    ]
    if case["id"] in KNOWN_BROKEN:
        assert wrong, "fixed: take it off the list of known faults"
    else:
        assert not wrong


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_every_cut_of_a_case_gives_the_same_reply(case: Case) -> None:
    if case["family"] in UNIMPLEMENTED:
        pytest.skip(f"the grammar of {case['family']} is still to be written")
    replies = {(run.ids, run.reply.blocks, run.reply.stop) for run in runs(case)}
    assert len({reply[1:] for reply in replies if not reply[0]}) == 1
    assert len({reply[1:] for reply in replies if reply[0]}) <= 1


def test_a_family_is_listed_as_unimplemented_exactly_while_it_is() -> None:
    absent = {case["family"] for case in CASES if not implemented(case)}
    assert absent == UNIMPLEMENTED

from __future__ import annotations

import pytest
from canitoolcall.fixtures import Fixture

from tests.conformance.recorded import DIFFERENT, different, fixtures


@pytest.mark.parametrize("fixture", fixtures(), ids=lambda fixture: fixture.id)
def test_a_recorded_output_is_read_as_recorded(fixture: Fixture) -> None:
    wrong = different(fixture)
    if fixture.id in DIFFERENT:
        assert wrong, f"no longer different ({DIFFERENT[fixture.id]}): take it off the list"
    else:
        assert not wrong


def test_at_least_97_of_100_are_read_as_recorded() -> None:
    known = {fixture.id for fixture in fixtures()}
    assert set(DIFFERENT) <= known
    assert len(DIFFERENT) <= 0.03 * len(known)

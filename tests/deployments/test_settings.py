"""Settings that cannot work together are refused with what to do."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from deployments.settings import EngineSettings


def test_replica_must_let_in_the_turns_that_are_placed_on_it() -> None:
    with pytest.raises(ValidationError, match=r"max_ongoing is 512: set it higher .* \(512\)"):
        EngineSettings(options={"max_turns": 512})
    assert EngineSettings(max_ongoing=513, options={"max_turns": 512}).max_ongoing == 513

"""Pages that the code says are as it says them, and each label's values are said."""

from __future__ import annotations

import pytest

from observe.metrics import Metrics
from scripts.reference import PAGES, ROOT, VALUES


@pytest.mark.parametrize("name", PAGES)
def test_the_page_is_as_written_from_the_code(name: str) -> None:
    assert (ROOT / "docs" / name).read_text() == PAGES[name](), "run `just reference`"


def test_every_label_says_its_values() -> None:
    for metric in Metrics().described:
        for label in metric.labels:
            assert (label, metric.name) in VALUES or (label, "") in VALUES
    named = {metric.name for metric in Metrics().described}
    assert {of for _, of in VALUES if of} <= named

"""A call says which replica it means: it comes to that one, and to another only where it is gone."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cluster.control import ENGINE, Control

pytestmark = pytest.mark.ray


def test_call_comes_to_the_replica_that_it_names(control: Control) -> None:
    def probe(replica: str) -> Any:
        return control.ask("ask", deployment=ENGINE, method="probe", replica=replica)["replica"]

    names = sorted(control.routed())
    assert [probe(name) for name in names] == names
    assert probe("gone") in names

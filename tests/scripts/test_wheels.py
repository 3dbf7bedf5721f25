from __future__ import annotations

import pytest

from scripts import wheels


@pytest.mark.parametrize(
    ("written", "moved"),
    [
        pytest.param(
            "from turns.events import Usage", "from treadle.turns.events import Usage", id="from"
        ),
        pytest.param("from parsers import wires", "from treadle.parsers import wires", id="room"),
        pytest.param("import families", "from treadle import families", id="bound-name"),
        pytest.param("import turns.turn as t", "import treadle.turns.turn as t", id="as"),
        pytest.param("import parsers.lists", "import treadle.parsers.lists", id="for-its-effect"),
        pytest.param(
            "import json, families", "import json; from treadle import families", id="two"
        ),
        pytest.param("from turnstile import x", "from turnstile import x", id="other-name"),
        pytest.param("x = 'from turns import y'", "x = 'from turns import y'", id="text"),
        pytest.param("from .turns import y", "from .turns import y", id="relative"),
        pytest.param(
            "def f():\n    import families\n",
            "def f():\n    from treadle import families\n",
            id="inside",
        ),
        pytest.param(
            "from turns.turn import (\n    Tool,\n)",
            "from treadle.turns.turn import (\n    Tool,\n)",
            id="lines",
        ),
    ],
)
def test_an_import_of_a_room_moves_and_nothing_else(written: str, moved: str) -> None:
    assert wheels.moved(written) == moved


def test_an_import_that_would_bind_another_name_is_refused() -> None:
    with pytest.raises(wheels.MovedImportError, match=r"line 1: write `import turns\.turn as"):
        wheels.moved("import turns.turn\nx = turns.turn.Tool")


def test_what_a_wheel_needs_is_what_its_rooms_need() -> None:
    """Beside each other, rooms on msgspec alone: the import contracts hold the rest."""
    for name in ("treadle-turns", "treadle-parsers", "treadle-protocols"):
        outside = [need for need in wheels.TABLE[name]["needs"] if not need.startswith("treadle-")]
        assert outside == ["msgspec>=0.22"]

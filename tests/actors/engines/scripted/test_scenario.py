from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from actors.engines.scripted.scenario import DEFAULT, Scenario, load, read
from actors.engines.scripted.scene import look
from actors.engines.scripted.script import Fault
from tests.actors.engines.scripted.toy import ask

ALWAYS: dict[str, Any] = {"reply": [{"text": "x"}]}


def test_the_first_rule_that_holds_is_picked() -> None:
    rules = [
        {"name": "a", "when": {"user_contains": "never"}, **ALWAYS},
        {"name": "b", "when": {"user_matches": "(?P<word>hel+o)"}, **ALWAYS},
        {"name": "c", **ALWAYS},
    ]
    scenario = read({"rules": rules})
    rule, caught = scenario.pick(look(ask("hello")))
    assert (rule.name, caught) == ("b", {"word": "hello"})
    assert scenario.pick(look(None))[0].name == "c"


@pytest.mark.parametrize("path", sorted(DEFAULT.parent.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_scenario_in_the_house_loads(path: Path) -> None:
    assert load(path).rules


@pytest.mark.parametrize(
    ("source", "says"),
    [
        pytest.param({"rules": []}, "last rule must have no `when`", id="no-rules"),
        pytest.param({"rules": [{"when": {"step": 1}, **ALWAYS}]}, "last rule", id="no-last"),
        pytest.param({"rules": [{"replies": []}]}, r"replies.*\$\.rules\[0\]", id="unknown-key"),
        pytest.param(
            {"rules": [{"when": {"step": []}, **ALWAYS}]}, r"\$\.rules\[0\]\.when\.step", id="type"
        ),
        pytest.param(
            {"rules": [{"reply": [{"text": "a", "think": "b"}]}]},
            r"exactly one key.*reply\[0\]",
            id="two-keys",
        ),
        pytest.param({"rules": [{"reply": [{}]}]}, "exactly one key, got none", id="no-key"),
        pytest.param(
            {"rules": [{"reply": [{"text": "{tool_reslt}"}]}]},
            "unknown placeholder {tool_reslt}",
            id="typo",
        ),
        pytest.param(
            {"rules": [{"reply": [{"raw": "a"}, {"text": "b"}]}]}, "raw stands alone", id="raw"
        ),
        pytest.param(
            {"rules": [{**ALWAYS, "crash_after": 1, "fail_after": 1}]},
            "exclude each other",
            id="faults",
        ),
        pytest.param(
            {"rules": [{**ALWAYS, "crash_after": {"tokens": 1, "how": "gently"}}]},
            "gently",
            id="how",
        ),
        pytest.param(
            {"rules": [{**ALWAYS, "when": {"step": "x"}}]},
            r"step is 'x'.*\$\.rules\[0\]\.when",
            id="range",
        ),
        pytest.param(None, "Expected `object`", id="empty-file"),
    ],
)
def test_faults_are_told_with_their_place(source: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        read(source)


def test_braces_that_are_no_placeholder_are_left_alone() -> None:
    read({"rules": [{"reply": [{"text": '{"a": 1} {{name}} {last_user:3}'}]}]})
    read({"rules": [{"reply": [{"raw": "{whatever}"}]}]})


def test_a_file_is_named_in_its_faults(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("rules: [")
    with pytest.raises(ValueError, match=r"mine\.yaml: not YAML"):
        load(path)
    path.write_text("rules: [{reply: 5}]")
    with pytest.raises(ValueError, match=r"mine\.yaml: .*\$\.rules\[0\]\.reply"):
        load(path)


@pytest.mark.parametrize(
    ("rule", "fault"),
    [
        ({}, None),
        ({"crash_after": 0}, (Fault("exit"), 0)),
        ({"crash_after": {"tokens": 3, "how": "raise"}}, (Fault("raise"), 3)),
        ({"fail_after": {"tokens": 2, "message": "m"}}, (Fault("fail", "m"), 2)),
        ({"hang_after": 4}, (Fault("hang"), 4)),
        ({"hang_after": {"tokens": 4, "scope": "engine"}}, (Fault("stall"), 4)),
    ],
)
def test_faults_of_a_rule(rule: dict[str, Any], fault: tuple[Fault, int] | None) -> None:
    assert one(**rule).rules[0].fault() == fault


def one(**rule: Any) -> Scenario:
    return read({"rules": [{**ALWAYS, **rule}]})

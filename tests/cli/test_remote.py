"""What keeps a server from being asked is said in words, and a key never stands in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cli.remote import Remote, RemoteError, key_from
from tests.serving.keyed import ADMIN, keyed

SECRET = "supersecretadminkey123"
NOWHERE = "http://127.0.0.1:1"


def fine(told: Any) -> bool:
    """Whether the command failed with words and its own exit code."""
    return isinstance(told.exception, SystemExit) and told.exit_code == 2


@pytest.mark.parametrize("end", ["\r", "\n", "\r\n", " ", "\t"])
def test_what_stands_around_a_key_is_no_part_of_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, end: str
) -> None:
    file = tmp_path / "key"
    file.write_bytes(b"\xef\xbb\xbf" + SECRET.encode() + end.encode())
    monkeypatch.setenv("TREADLE_ADMIN_KEY", SECRET + end)
    assert key_from("TREADLE_ADMIN_KEY", None) == SECRET
    assert key_from("TREADLE_ADMIN_KEY", file) == SECRET


async def test_a_key_with_a_carriage_return_opens(asked: Any, monkeypatch: Any) -> None:
    async with keyed(monkeypatch) as server:
        env = {"TREADLE_ADMIN_KEY": f"{ADMIN}\r"}
        assert await asked("keys", "list", "--url", server.url, env=env) == []


@pytest.mark.parametrize(
    "odd", [f"{SECRET}\nx", f"{SECRET}\x7f", f"{SECRET}\u00e4", f"{SECRET}\u2026"]
)
def test_what_is_no_key_is_refused_and_not_repeated(typed: Any, tmp_path: Path, odd: str) -> None:
    told = typed("keys", "list", "--url", NOWHERE, env={"TREADLE_ADMIN_KEY": odd})
    assert fine(told)
    assert "TREADLE_ADMIN_KEY is no key" in told.output
    assert SECRET not in told.output
    for encoding in ("utf-8", "utf-16"):
        (tmp_path / "key").write_text(odd, encoding=encoding)
        told = typed("keys", "list", "--url", NOWHERE, "--key-file", str(tmp_path / "key"))
        assert fine(told)
        assert "key is no key" in told.output.replace("\n", "")
        assert SECRET not in told.output


def test_a_key_file_that_is_no_text_is_refused(typed: Any, tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(b"\xff\xfe\x00secret")
    told = typed("models", "--url", NOWHERE, "--key-file", str(tmp_path / "key"), "--json")
    assert fine(told)
    assert "printable ASCII" in told.output
    assert "secret" not in told.output


@pytest.mark.parametrize(
    "url",
    ["http://[", "http://[x]", "http://", "http://:8000", "http://here:port", "here:8000", ""],
)
@pytest.mark.parametrize("words", [["models"], ["keys", "list"], ["doctor"]])
def test_what_is_no_url_is_said(typed: Any, url: str, words: list[str]) -> None:
    told = typed(*words, "--url", url)
    assert fine(told)
    assert "no URL of a server" in told.output


def test_an_address_that_is_not_ascii_is_said() -> None:
    remote = Remote("http://127.0.0.1:1/\u00e4", SECRET)
    with pytest.raises(RemoteError, match="write it in ASCII") as said:
        remote.ask("GET", "/health")
    assert SECRET not in str(said.value)


def test_an_id_of_a_key_goes_into_a_path(typed: Any) -> None:
    told = typed("keys", "revoke", "a b/\u00e4", "--url", NOWHERE)
    assert fine(told)
    assert "no server at" in told.output

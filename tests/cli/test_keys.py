from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from tests.serving.keyed import ADMIN, keyed


async def test_a_key_is_made_listed_used_and_revoked(
    asked: Any, typed: Any, monkeypatch: Any, tmp_path: Path
) -> None:
    async with keyed(monkeypatch, access={"audit_file": str(tmp_path / "audit")}) as server:
        at = ("--url", server.url)
        admin = {"TREADLE_ADMIN_KEY": ADMIN}
        words = ("--name", "ci", "--model", "lab*", "--requests-per-minute", "9", "--days", "1")
        made = await asked("keys", "add", "acme", *words, *at, env=admin)
        gone = await asked("keys", "add", "umbrella", *at, env=admin)
        file = tmp_path / "key"
        file.write_text(made["key"] + "\n")
        assert await asked("models", *at, "--key-file", str(file))
        one = next(k for k in await asked("keys", "list", *at, env=admin) if k["name"] == "ci")
        assert (one["id"], one["models"], one["scopes"]) == (
            made["id"],
            ["lab*"],
            ["turns", "tools"],
        )
        table = await asyncio.to_thread(typed, "keys", "list", *at, env=admin)
        assert "9 requests_per_minute" in table.output
        assert made["key"] not in table.output
        assert (await asked("keys", "revoke", made["id"], *at, env=admin))["revoked"]
        refused = await asked("models", *at, "--key-file", str(file))
        assert "TREADLE_API_KEY" in refused["error"]
        other = await asked("keys", "list", *at, env={"TREADLE_ADMIN_KEY": made["key"]})
        assert "TREADLE_ADMIN_KEY (HTTP 401)" in other["error"]
        again = await asked("keys", "revoke", gone["key"], *at, env=admin)
        assert again["id"] == gone["id"]  # the key itself is understood, and not sent

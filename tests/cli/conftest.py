"""The command as a person types it, against a server in this process where it needs one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from click.testing import CliRunner, Result

from cli.app import main

Type = Callable[..., Result]


@pytest.fixture
def typed() -> Type:
    """Runs the command with these words; `env` adds to the environment."""

    def run(*words: str, env: dict[str, str] | None = None) -> Result:
        return CliRunner().invoke(main, list(words), env=env)

    return run


@pytest.fixture
def asked(typed: Type) -> Callable[..., Any]:
    """The same beside a running loop; gives the JSON that the command printed."""

    async def run(*words: str, env: dict[str, str] | None = None) -> Any:
        end = words.index("--") if "--" in words else len(words)
        line = (*words[:end], "--json", *words[end:])
        result = await asyncio.to_thread(typed, *line, env=env)
        assert result.exception is None or isinstance(result.exception, SystemExit), result
        return json.loads(result.stdout)

    return run

"""A harness and the person at it: one home, one prompt after the other, and what its model says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.harness import clis
from tests.harness.clis import Asked, Started

EACH = pytest.mark.parametrize("name", ["claude", "codex"])
SHELL = {"claude": ("Bash", "command"), "codex": ("exec_command", "cmd")}
GO_ON = {"claude": ("-c",), "codex": ("resume", "--last")}
Rule = dict[str, Any]


class Agent:
    """Claude Code or Codex, as `name` says, at a server's `url`, which may change."""

    def __init__(self, name: str, home: Path, url: str, **codex: str) -> None:
        clis.program(name)
        self.name = name
        self.home = home
        self.url = url
        self._codex = codex

    def asked(self, prompt: str, *, go_on: bool = False) -> Asked:
        more = GO_ON[self.name] if go_on else ()
        if self.name == "claude":
            return clis.claude(self.url, self.home, prompt, "--allowedTools", "Bash,Read", *more)
        return clis.codex(self.url, self.home, prompt, *more, **self._codex)

    async def does(self, prompt: str, *, go_on: bool = False, good: bool = True) -> str:
        """What it printed about a prompt, of its last session or a new one."""
        asked = self.asked(prompt, go_on=go_on)
        return await clis.run(self.name, self.home, asked, good=good)

    async def begins(self, prompt: str) -> Started:
        return await clis.begin(self.name, self.home, self.asked(prompt))


def shell(name: str, command: str) -> Rule:
    """A call of the harness's own shell."""
    tool, argument = SHELL[name]
    return {"call": {"tool": tool, "arguments": {argument: command}}}


def when(*reply: Any, **holds: Any) -> Rule:
    return {"when": holds, "reply": list(reply)}


def scenario(folder: Path, *rules: Rule) -> dict[str, Any]:
    """Engine options: these rules, and an answer to whatever else a harness asks for."""
    file = folder / "scenario.yaml"
    file.write_text(yaml.safe_dump({"rules": [*rules, {"reply": [{"text": "A short answer."}]}]}))
    return {"scenario": str(file)}

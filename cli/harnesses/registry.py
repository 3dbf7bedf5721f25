"""The harnesses by name."""

from __future__ import annotations

from cli.harnesses import claude, codex, openclaw, opencode, qwen
from cli.harnesses.setup import Make

HARNESSES: dict[str, Make] = {
    "claude": claude.setup,
    "codex": codex.setup,
    "openclaw": openclaw.setup,
    "opencode": opencode.setup,
    "qwen": qwen.setup,
}

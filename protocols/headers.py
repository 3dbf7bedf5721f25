"""What request headers and extension fields tell about a turn: its session and its hints.

Header names come in lower case. Nothing in them is trusted: a value that is too long or not plain
is as good as absent, and a malformed hint is reported, never an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from turns.turn import Hints

LONGEST = 256
DISPATCH = ("events", "comments", "off")
# (session, parent) header pairs of harnesses that name a conversation by one header.
PLAIN = (
    ("x-treadle-session", "x-treadle-parent-session"),
    ("x-dynamo-session-id", "x-dynamo-parent-session-id"),
    ("x-session-id", "x-parent-session-id"),  # OpenCode
    ("x-session-affinity", "x-parent-session-id"),
    ("session-id", ""),  # pi
    ("session_id", ""),  # Codex before 0.100
)


class AgentHints(msgspec.Struct):
    """`nvext.agent_hints`, and the shape that the `x-treadle-*` headers are read into."""

    priority: int | None = None
    osl: int | None = None
    latency_sensitivity: float | None = None
    speculative_prefill: bool | None = None
    deadline_s: float | None = None


def plain(headers: Mapping[str, str], name: str) -> str:
    """A header's value, or "" when it is absent or nothing that should become a key."""
    value = headers.get(name, "").strip()
    return value if len(value) <= LONGEST and value.isprintable() else ""


def session(headers: Mapping[str, str]) -> tuple[str, str]:
    """(session, parent session), "" where the harness gave none.

    A sub-agent is a conversation of its own: Claude Code keeps one session id and adds an agent
    id, Codex gives each its own thread id.
    """
    if own := plain(headers, "x-treadle-session"):
        return own, plain(headers, "x-treadle-parent-session")
    if claude := plain(headers, "x-claude-code-session-id"):
        agent = plain(headers, "x-claude-code-agent-id")
        if not agent:
            return claude, ""
        parent = plain(headers, "x-claude-code-parent-agent-id")
        return f"{claude}/{agent}", f"{claude}/{parent}" if parent else claude
    if thread := plain(headers, "thread-id"):
        root = plain(headers, "session-id")
        parent = plain(headers, "x-codex-parent-thread-id")
        return thread, parent or (root if root != thread else "")
    for name, parent_name in PLAIN:
        if key := plain(headers, name):
            return key, plain(headers, parent_name)
    return "", ""


def hints(headers: Mapping[str, str], nvext: Any, ignored: list[str]) -> Hints:
    """The hints of the body (`nvext.agent_hints`), overridden by `x-treadle-*` headers."""
    agent = nvext.get("agent_hints") if isinstance(nvext, dict) else None
    found: dict[str, Any] = dict(agent) if isinstance(agent, dict) else {}
    if nvext is not None and not isinstance(nvext, dict):
        ignored.append("nvext")
    for name in AgentHints.__struct_fields__:
        if value := plain(headers, f"x-treadle-{name.replace('_', '-')}"):
            found[name] = value
    if not found:
        return Hints()
    good = {}
    for name, value in found.items():
        try:
            read = msgspec.convert({name: value}, AgentHints, strict=False)
        except msgspec.ValidationError:
            ignored.append(f"agent_hints.{name}")
            continue
        if name not in AgentHints.__struct_fields__:
            ignored.append(f"agent_hints.{name}")
        elif (hint := getattr(read, name)) is not None:
            good[name] = hint
    return Hints(**good)


def dispatch(headers: Mapping[str, str]) -> str:
    """`x-treadle-dispatch`: how complete calls are announced beside the stream, "" where the
    client does not say.
    """
    return _aside(headers, "x-treadle-dispatch")


def synopses(headers: Mapping[str, str]) -> str:
    """`x-treadle-synopses`: how interim results of running tools are told, "" and "off" for not."""
    return _aside(headers, "x-treadle-synopses")


def _aside(headers: Mapping[str, str], name: str) -> str:
    asked = headers.get(name, "").strip().lower()
    return asked if asked in DISPATCH else ""

"""What request headers and extension fields tell about a turn: its session and its hints.

Header names come in lower case. Nothing in them is trusted: a value that is too long or not plain
is as good as absent, and a malformed hint is reported, never an error.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from turns.turn import Hints

LONGEST = 256
LONGEST_TTL = 24 * 3600
TIERS = 10
_TTL = re.compile(r"(?P<count>[0-9]{1,9})(?P<unit>[smh]?)")
_UNITS = {"s": 1, "m": 60, "h": 3600}
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

    priority: Annotated[int, Meta(ge=-(2**31), lt=2**31)] | None = None
    tier: Annotated[int, Meta(ge=-TIERS, le=TIERS)] | None = None
    osl: Annotated[int, Meta(ge=1, le=2**31)] | None = None
    latency_sensitivity: Annotated[float, Meta(ge=0, le=1)] | None = None
    speculative_prefill: bool | None = None
    deadline_s: Annotated[float, Meta(ge=0)] | None = None
    final: bool | None = None


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
        hint = getattr(read, name, None)
        if name not in AgentHints.__struct_fields__ or hint == math.inf:
            ignored.append(f"agent_hints.{name}")
        elif hint is not None:
            good[name] = hint
    return Hints(**good)


def retention(
    headers: Mapping[str, str], nvext: Any, controls: Sequence[Any], ignored: list[str]
) -> int:
    """Seconds that a prompt shall stay cached: the longest explicit ttl, 0 where there is none.

    From `x-treadle-cache-ttl`, `nvext.cache_control` and `cache_control`: `{"ttl": "1h"}`. Without
    a ttl the cache's own ways are meant, and nothing is kept on purpose. One that is malformed asks
    for nothing, one that is too long for the longest there is; both are named in `ignored`.
    """
    within = nvext.get("cache_control") if isinstance(nvext, dict) else None
    said = [control for control in (within, *controls) if control is not None]
    found = [seconds(control.get("ttl")) for control in said if isinstance(control, dict)]
    if len(found) < len(said):
        ignored.append("cache_control")
    if header := plain(headers, "x-treadle-cache-ttl"):
        found.append(seconds(header))
    if any(one is None or one > LONGEST_TTL for one in found):
        ignored.append("cache_control.ttl")
    return min(max((one or 0 for one in found), default=0), LONGEST_TTL)


def seconds(said: Any) -> int | None:
    """`"5m"`, `"1h"`, `"90s"`, `90`; None, what is not said, is 0, and anything else is None."""
    if said is None:
        return 0
    if isinstance(said, int) and not isinstance(said, bool):
        return said if said >= 0 else None
    match = _TTL.fullmatch(said) if isinstance(said, str) else None
    return int(match["count"]) * _UNITS[match["unit"] or "s"] if match is not None else None


def salt(headers: Mapping[str, str], nvext: Any) -> str:
    """What keeps a prompt apart in prefix caches: `x-treadle-cache-salt`, `nvext.cache_salt`."""
    said = nvext.get("cache_salt") if isinstance(nvext, dict) else None
    return plain(headers, "x-treadle-cache-salt") or (
        said[:LONGEST] if isinstance(said, str) else ""
    )


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

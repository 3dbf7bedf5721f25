"""What is known of the client programs: how long they wait for a tool, how they name a call."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from toolruns.budget import Harness


class Profile(Struct, frozen=True):
    """`name` is matched against the client's `name/version` or user agent. `timeout` is its limit
    on a tool call in seconds, as measured with its defaults; `progress` says whether progress
    extends it.
    """

    name: str
    timeout: float
    progress: bool = False


PROFILES = (
    Profile("claude-code|claude-ai|claude code", 56.0, progress=True),
    Profile("codex", 56.0),
    Profile("openclaw", 56.0),
    Profile("opencode|cline|qwen|gemini-cli|cursor|vscode", 56.0),
)
"""Answer before 45 s (0.8 of 56) unless a client is known to wait longer: the least of theirs is a
minute."""

CALL_IDS = ("claudecode/toolUseId", "callId")
"""Where a client puts the id of the model's tool call, which our own ingress minted."""


def harness_of(client: str, overrides: Mapping[str, float] | None = None) -> Harness:
    """The profile of a client's `name/version`; `overrides` maps patterns to seconds."""
    for pattern, timeout in (overrides or {}).items():
        if re.search(pattern, client, re.IGNORECASE):
            return Harness(client, timeout)
    for profile in PROFILES:
        if re.search(profile.name, client, re.IGNORECASE):
            return Harness(client, profile.timeout, profile.progress)
    return Harness(client)


def call_id_of(meta: Mapping[str, Any]) -> str:
    """The tool-call id that our ingress minted for this call, "" if the client names none."""
    for key in CALL_IDS:
        value = meta.get(key)
        if isinstance(value, str):
            return value
    return ""

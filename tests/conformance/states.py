"""What is known about cases that do not simply work, in three of the four states.

A case in none of these tables works, and a test asserts it. A known-broken case is asserted to be
broken, so that a fix must take it off the list; a case that does not apply says why.
"""

from __future__ import annotations

KNOWN_BROKEN: dict[str, str] = {}
"""Case -> the fault that is known."""

NOT_APPLICABLE: dict[str, str] = {}
"""Case -> why it does not apply to this machine."""

UNIMPLEMENTED: frozenset[str] = frozenset()
"""Families of the corpus whose grammar is still to be written."""

"""Profiles and aliases: what a harness must know of a model to treat it as one it knows.

Codex shapes its whole request (tools, prompt, truncation, effort, verbosity) by a catalogue entry,
and falls back to a poor one for a model without; `codex` writes that entry from a profile. A
profile is plain data that a user edits; one wrong field in one entry makes Codex discard the whole
catalogue, so profiles are checked when they are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct, field

INSTRUCTIONS = (
    "You are a coding agent that works in the user's own directory through the tools you are "
    "given. Look before you change: read the files and run the commands that tell you how things "
    "stand. Make the smallest change that does what was asked, in the style of what is there. "
    "Check your work by running it. Say plainly what you did, what you saw and what is left; "
    "never claim a result that you did not see."
)
Input = Literal["text", "image"]
Percent = Annotated[int, Meta(ge=1, le=100)]


class Truncation(Struct, frozen=True, forbid_unknown_fields=True):
    """How much of a tool's output Codex sends back."""

    mode: Literal["tokens", "bytes"] = "tokens"
    limit: Annotated[int, Meta(ge=1)] = 10_000


class Profile(Struct, frozen=True, forbid_unknown_fields=True):
    """How harnesses shall treat a model. `efforts` maps a level to its description.

    `apply_patch` offers the freeform patch tool; `search_tool` defers tools behind a client-side
    search; `auto_compact` is in tokens, None for Codex's own default of 90 %. `inputs` is what a
    prompt may hold, None for what the model takes.
    """

    efforts: dict[str, str] = field(
        default_factory=lambda: {
            "low": "Answers fast, with little reasoning",
            "medium": "Reasons as much as the task seems to need",
            "high": "Reasons long, for hard problems",
        }
    )
    default_effort: str = "medium"
    instructions: str = INSTRUCTIONS
    shell: Literal["shell_command", "unified_exec", "disabled"] = "shell_command"
    apply_patch: bool = True
    search_tool: bool = False
    parallel_calls: bool = True
    summaries: bool = True
    verbosity: Literal["", "low", "medium", "high"] = ""
    truncation: Truncation = field(default_factory=Truncation)
    auto_compact: int | None = None
    effective_percent: Percent = 95
    inputs: tuple[Input, ...] | None = None
    visibility: Literal["list", "hide", "none"] = "list"
    priority: int = 1
    description: str = ""

    def __post_init__(self) -> None:
        if self.efforts and self.default_effort not in self.efforts:
            levels = ", ".join(self.efforts)
            raise ValueError(f"default_effort '{self.default_effort}' is none of: {levels}")
        if not self.instructions.strip():
            raise ValueError("instructions must not be empty: Codex discards such a catalogue")


class Alias(Struct, frozen=True, forbid_unknown_fields=True):
    """A name, or a pattern such as `claude-*`, under which a served model is known too."""

    name: str
    model: str
    profile: str = ""


def profile(value: Mapping[str, Any], name: str) -> Profile:
    """A profile as its file gives it; raises ValueError naming the file's fault."""
    try:
        return msgspec.convert(value, Profile)
    except (msgspec.ValidationError, ValueError) as error:
        raise ValueError(f"profile '{name}': {error}") from None


def resolve(name: str, served: Iterable[str], aliases: Iterable[Alias]) -> Alias | None:
    """What a client's model name stands for: itself, else an alias, else the first pattern."""
    if name in set(served):
        return Alias(name, name)
    known = list(aliases)
    exact = next((alias for alias in known if alias.name == name), None)
    return exact or next((alias for alias in known if fnmatchcase(name, alias.name)), None)


def codex(
    slug: str, title: str, window: int | None, shape: Profile, inputs: Iterable[Input] = ("text",)
) -> dict[str, Any]:
    """One `ModelInfo` of Codex's catalogue, every required field there."""
    return {
        "slug": slug,
        "display_name": title or slug,
        "description": shape.description or None,
        "default_reasoning_level": shape.default_effort if shape.efforts else None,
        "supported_reasoning_levels": [
            {"effort": effort, "description": told} for effort, told in shape.efforts.items()
        ],
        "shell_type": shape.shell,
        "visibility": shape.visibility,
        "supported_in_api": True,
        "priority": shape.priority,
        "availability_nux": None,
        "upgrade": None,
        "base_instructions": shape.instructions,
        "supports_reasoning_summaries": shape.summaries,
        "default_reasoning_summary": "auto" if shape.summaries else "none",
        "support_verbosity": bool(shape.verbosity),
        "default_verbosity": shape.verbosity or None,
        "apply_patch_tool_type": "freeform" if shape.apply_patch else None,
        "truncation_policy": {"mode": shape.truncation.mode, "limit": shape.truncation.limit},
        "supports_parallel_tool_calls": shape.parallel_calls,
        "supports_search_tool": shape.search_tool,
        "supports_image_detail_original": False,
        "context_window": window,
        "max_context_window": window,
        "auto_compact_token_limit": shape.auto_compact,
        "effective_context_window_percent": shape.effective_percent,
        "experimental_supported_tools": [],
        "input_modalities": list(inputs),
    }

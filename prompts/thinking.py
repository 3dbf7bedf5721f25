"""From the neutral thinking setting to template arguments and the engine's limit. Off is off."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from families.family import Family
from turns.errors import InvalidRequestError
from turns.turn import Turn

_RESERVED = frozenset(
    {"messages", "tools", "documents", "add_generation_prompt", "chat_template", "tokenize"}
)
_SILENT = frozenset({"none", "off", "disabled"})


class Controls(Struct, frozen=True):
    """What the thinking setting of a turn comes to.

    `on` is None where the family does not reason. `budget` is the engine's limit of reasoning
    tokens, None for none. `word` goes to the end of the system message, on a line of its own.
    """

    on: bool | None
    arguments: dict[str, Any] = field(default_factory=dict)
    budget: int | None = None
    word: str = ""


def controls(turn: Turn, family: Family, efforts: Mapping[str, int | None]) -> Controls:
    """The controls of a turn; `efforts` gives a budget in tokens for an effort word.

    A turn with tools reasons unless the client has said no. A client's own template arguments win
    over what is derived here, but not over its own "off", and they cannot stand in for the
    conversation: such names are refused with `InvalidRequestError`.
    """
    own = turn.template_kwargs
    if refused := sorted(_RESERVED & own.keys()):
        msg = f"chat_template_kwargs may not set {refused[0]}"
        if refused[0] == "chat_template":
            msg = "this server takes no chat template from a request; leave it out"
        raise InvalidRequestError(msg, param=f"chat_template_kwargs.{refused[0]}")
    scheme = family.thinking
    if scheme.default == "none":
        return Controls(None, dict(own))
    thinking = turn.thinking
    if thinking.mode == "off" or thinking.effort in _SILENT:
        return Controls(False, {**own, **scheme.off}, word=scheme.system_off)
    said = thinking.mode == "on" or bool(turn.tools) or scheme.default == "on"
    if not _own_switch(own, family, on=said):
        return Controls(False, {**scheme.off, **own}, word=scheme.system_off)
    arguments: dict[str, Any] = dict(scheme.on)
    if turn.tools:
        arguments |= family.replay.agentic
    arguments |= scheme.effort.get(thinking.effort, {})
    budget = thinking.budget
    if budget is None and thinking.effort not in scheme.effort:
        budget = efforts.get(thinking.effort)
    if scheme.budget_arg and budget is not None:
        arguments[scheme.budget_arg] = budget
    word = scheme.system_on if scheme.default != "on" else ""  # else it is the template's habit
    return Controls(True, {**arguments, **own}, budget, word)


def _own_switch(own: Mapping[str, Any], family: Family, *, on: bool) -> bool:
    """What the client's own template arguments make of it (`enable_thinking: false`)."""
    if _sets(own, family.thinking.off):
        return False
    return on or _sets(own, family.thinking.on)


def _sets(own: Mapping[str, Any], switch: Mapping[str, Any]) -> bool:
    return bool(switch) and all(
        name in own and own[name] == value for name, value in switch.items()
    )

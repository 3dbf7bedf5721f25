"""Which chat template serves a model: its folder's own, unless that cannot carry an agent."""

from __future__ import annotations

from families.family import Family
from prompts.template import ChatTemplate, Clock, Folder, shipped, shipped_for
from prompts.traits import read

_PLAIN = "plain"


def templates_of(folder: Folder, family: Family, clock: Clock) -> dict[str, ChatTemplate]:
    """The templates by name. Raises `ValueError` if one does not parse.

    The one shipped for the family stands in for a folder's that is missing or shows no tools.
    """
    tokens = folder.tokens()

    def made(source: str) -> ChatTemplate:
        return ChatTemplate(source, tokens=tokens, clock=clock)

    own = {name: made(source) for name, source in folder.sources().items()}
    if "default" in own and any(_serves_tools(template, family) for template in own.values()):
        return own
    ours = shipped_for(family)
    if ours is None and "default" in own:
        return own
    return {"default": made(ours or shipped(_PLAIN) or "")}


def _serves_tools(template: ChatTemplate, family: Family) -> bool:
    traits = read(template, {**family.thinking.on, **family.replay.agentic})
    return traits.tools and traits.calls

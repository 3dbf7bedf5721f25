"""Which family a model folder belongs to: by its chat template first, then by its architecture.

The template decides, because it is what taught the model its wire syntax: a distillation has the
architecture of its student and the template of its teacher. Of several families whose marks all
stand in the template, the one with more marks wins when its marks contain the other's. Where the
folder has no template, or one that no family knows, the architecture decides if only one family
has it. Otherwise nobody guesses: the error names the candidates.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from families.family import Family
from families.registry import known
from turns.errors import TreadleError


class UnsureFamilyError(TreadleError):
    """The folder does not say which family it is; `candidates` are the ones that could be."""

    def __init__(self, message: str, candidates: tuple[str, ...]) -> None:
        super().__init__(message, param="family")
        self.candidates = candidates


def detect(folder: Path) -> Family:
    """The family of a model folder in Hugging Face's layout. Raises UnsureFamilyError."""
    return recognise(architectures(folder), template(folder), known().values())


def recognise(
    names: Iterable[str], chat_template: str, among: Iterable[Family] | None = None
) -> Family:
    """The family of a model with these architectures and this template text."""
    everyone = list(known().values() if among is None else among)
    wanted = set(names)
    marked = [
        family
        for family in everyone
        if family.template_marks and all(mark in chat_template for mark in family.template_marks)
    ]
    best = _most_specific(marked)
    if len(best) > 1:
        best = [family for family in best if wanted & set(family.architectures)] or best
    if len(best) == 1:
        return best[0]
    built = [family for family in everyone if wanted & set(family.architectures)]
    if not best and len(built) == 1:
        return built[0]
    raise _unsure(wanted, chat_template, best or built)


def architectures(folder: Path) -> tuple[str, ...]:
    """`architectures` of config.json; () where there is none."""
    found = _json(folder / "config.json").get("architectures")
    return tuple(map(str, found)) if isinstance(found, list) else ()


def template(folder: Path) -> str:
    """The chat template of the folder as text; "" where there is none.

    A tokenizer config may hold several by name: the one for tools knows more than the default.
    """
    file = folder / "chat_template.jinja"
    if file.is_file():
        return file.read_text(encoding="utf-8")
    found = _json(folder / "tokenizer_config.json").get("chat_template")
    if not found:
        found = _json(folder / "chat_template.json").get("chat_template")
    if isinstance(found, list):
        named = {entry.get("name"): entry.get("template") for entry in found}
        found = named.get("tool_use") or named.get("default")
    return found if isinstance(found, str) else ""


def _most_specific(marked: list[Family]) -> list[Family]:
    """Those whose marks are not all among the marks of another."""
    sets = [set(family.template_marks) for family in marked]
    return [
        family
        for family, own in zip(marked, sets, strict=True)
        if not any(own < other for other in sets)
    ]


def _unsure(wanted: set[str], chat_template: str, candidates: list[Family]) -> UnsureFamilyError:
    names = tuple(family.name for family in candidates)
    said = f"architecture {', '.join(sorted(wanted)) or 'not given'}"
    seen = "its chat template fits none alone" if chat_template else "no chat template"
    could = f"could be: {', '.join(names)}" if names else f"known are: {', '.join(known())}"
    return UnsureFamilyError(
        f"cannot tell the family of this model ({said}, {seen}); {could}. Name it in the settings.",
        names,
    )


def _json(file: Path) -> dict[str, Any]:
    if not file.is_file():
        return {}
    found = msgspec.json.decode(file.read_bytes())
    return found if isinstance(found, dict) else {}

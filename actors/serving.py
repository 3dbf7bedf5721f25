"""A served model: its folder, its family, and what every process makes of them.

The folder is the ordinary one of a Hugging Face model (config.json, tokenizer.json, chat
template); an engine may need its weights too, nothing else does.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from msgspec import Struct, field

from actors.legs import turn_of
from actors.messages import Opening
from actors.parsing import MakeDetokenizer, MakeParser
from families import detection, registry
from families.family import Family
from parsers import grammars
from parsers.detokenizer import Detokenizer
from parsers.grammar import Grammar
from parsers.machine import TurnParser
from prompts.folders import scripted_folder
from prompts.prompter import Prompter, PromptSettings
from prompts.tokenizer import Tokenizer
from protocols import ids
from protocols.catalog import Profile
from turns.errors import EngineError

SCRIPTED = "scripted:"
"""A folder that is made on the spot: a tokenizer and a template, no weights."""


class ModelSpec(Struct, frozen=True):
    """A model as the configuration names it. `aliases` are other ids that clients may use.

    `made` is where folders are kept that are made on the spot; `profile` tells harnesses how to
    treat the model; `dispatch` is how calls are announced to clients that do not say.
    """

    name: str
    folder: str
    family: str
    made: str
    aliases: tuple[str, ...] = ()
    display_name: str = ""
    context_window: int | None = None
    max_output: int | None = None
    prompt: PromptSettings = field(default_factory=PromptSettings)
    profile: Profile = field(default_factory=Profile)
    dispatch: str = ""


class ModelFolder:
    """What can be read from the folder, loaded once per process and only when asked for."""

    def __init__(self, spec: ModelSpec) -> None:
        self.spec = spec

    def __reduce__(self) -> tuple[type[ModelFolder], tuple[ModelSpec]]:
        return ModelFolder, (self.spec,)

    @cached_property
    def path(self) -> Path:
        """The folder; made first when it is a scripted one. Raises EngineError when absent."""
        spec = self.spec
        if spec.folder == SCRIPTED:
            return scripted_folder(Path(spec.made) / f"scripted-{spec.family}", self.family)
        path = Path(spec.folder)
        if not path.is_dir():
            msg = f"model {spec.name!r}: there is no folder {path}; see the README on model folders"
            raise EngineError(msg)
        return path

    @cached_property
    def created(self) -> int:
        """When the model was put there, in Unix seconds."""
        return int((self.path / "config.json").stat().st_mtime)

    @cached_property
    def family(self) -> Family:
        if self.spec.family == "auto":
            return detection.detect(self.path)
        return registry.get(self.spec.family)

    @cached_property
    def grammar(self) -> Grammar:
        """The family's grammar; which of its markers are one token only the vocabulary knows."""
        special = tuple(sorted(self.tokenizer.special.values()))
        return grammars.get(self.family.grammar, special=special)

    @cached_property
    def prompter(self) -> Prompter:
        return Prompter.load(self.path, self.family, settings=self.spec.prompt)

    @cached_property
    def tokenizer(self) -> Tokenizer:
        return self.prompter.tokenizer

    def warm(self) -> None:
        """Load everything an ingress needs, so that no turn waits for it."""
        self.prompter  # noqa: B018 - loading is the point
        self.parser_parts()

    def parser_parts(self) -> tuple[MakeDetokenizer, MakeParser]:
        """How a detokeniser and a parser are made for a turn of this model."""
        vocab, special, grammar = self.tokenizer.vocab_bytes, self.tokenizer.special, self.grammar

        def make_parser(opening: Opening) -> TurnParser:
            spec = opening.spec
            return TurnParser(
                grammar,
                mint=lambda index, _name: ids.call("", turn_of(opening.turn), index),
                tools=spec.tools,
                tail=spec.tail,
                stop=spec.stop,
                tool_choice=spec.tool_choice,
                ids=True,
            )

        return (lambda: Detokenizer(vocab, special)), make_parser

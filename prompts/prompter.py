"""One renderer: what is generated from, counted and shown is the same token ids.

Pure CPU, no I/O after loading; safe from several threads.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from functools import partial
from pathlib import Path

from msgspec import Struct, field

from families.family import Family
from prompts.blame import blamed
from prompts.guard import HOLE, Guard, unguard
from prompts.messages import CUT, Scribe
from prompts.replies import Replies
from prompts.selection import templates_of
from prompts.spelling import Spelling
from prompts.stabilise import Placed, hoisted, without_billing
from prompts.template import ChatTemplate, Clock, Folder, TemplateError
from prompts.thinking import controls
from prompts.tokenizer import Tokenizer
from prompts.tools import ToolHeader
from prompts.traits import read
from turns.errors import InvalidRequestError
from turns.turn import Turn

_TAIL = 256
_SLOT = re.compile(f"{HOLE}([0-9]+){HOLE}")


class PromptSettings(Struct, frozen=True):
    """What an operator may choose about prompts.

    `efforts` gives reasoning budgets in tokens for effort words that the family's template does
    not take itself; None is no limit.
    """

    strip_billing_header: bool = True
    hoist_system: bool = True
    fast_tokenizer: bool = True
    efforts: dict[str, int | None] = field(
        default_factory=lambda: {
            "minimal": 512,
            "low": 2048,
            "medium": 8192,
            "high": None,
            "xhigh": None,
            "max": None,
        }
    )


class Prompt(Struct, frozen=True):
    """A turn ready for an engine.

    `tail` is the end of the rendered text, at most 256 characters; `stop_ids` end the reply.
    `thinking_budget` limits reasoning, in tokens.
    """

    ids: list[int]
    tail: str
    stop_ids: tuple[int, ...]
    thinking_budget: int | None


class _Voice(Struct, frozen=True):
    """A template and what writes for it."""

    template: ChatTemplate
    scribe: Scribe


class Prompter:
    """Turns to prompts, for one model."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        templates: Mapping[str, ChatTemplate],
        family: Family,
        settings: PromptSettings,
    ) -> None:
        """`templates` by name: `default`, and `tool_use` where turns with tools have their own."""
        self.tokenizer = tokenizer
        self.family = family
        self.settings = settings
        self._guard = Guard(tokenizer.special.values())
        self._header = ToolHeader(self._guard)
        self._spelling = Spelling(family, self._guard)
        self._voices = {name: self._voice(template) for name, template in templates.items()}
        ids = (tokenizer.id_of(name) for name in family.stop_tokens)
        self._stop_ids = tuple(number for number in ids if number is not None)

    @classmethod
    def load(
        cls,
        model_dir: Path,
        family: Family,
        *,
        settings: PromptSettings | None = None,
        clock: Clock = datetime.now,
    ) -> Prompter:
        """From a model folder. Raises `FileNotFoundError` or `ValueError` if it cannot serve."""
        settings = settings or PromptSettings()
        tokenizer = Tokenizer.load(
            model_dir,
            control=(*family.special_tokens, *family.stop_tokens),
            fast=settings.fast_tokenizer,
        )
        return cls(tokenizer, templates_of(Folder(model_dir), family, clock), family, settings)

    def prepare(self, turn: Turn) -> Prompt:
        """The prompt of a turn. Raises `InvalidRequestError` naming the message and the field."""
        try:
            text, budget = self._rendered(turn)
        except RecursionError as err:
            msg = "tools or messages are nested too deeply"
            raise InvalidRequestError(msg) from err
        return Prompt(
            ids=self.tokenizer.encode_guarded(text),
            tail=unguard(text[-_TAIL:]),
            stop_ids=self._stop_ids,
            thinking_budget=budget,
        )

    def render(self, turn: Turn) -> str:
        """The text of the prompt, for people to read."""
        return unguard(self._rendered(turn)[0])

    def _rendered(self, turn: Turn) -> tuple[str, int | None]:
        """The text with its guards still in place, and the reasoning budget."""
        control = controls(turn, self.family, self.settings.efforts)
        arguments = {name: self._guard.argument(v) for name, v in control.arguments.items()}
        tools = self._header.of(turn.tools)
        voice = self._voices.get("tool_use" if tools else "default") or self._voices["default"]
        conversation = voice.scribe.write(self._placed(turn), turn.tools, arguments)
        render = partial(voice.template.render, tools=tools, arguments=arguments)
        try:
            text = render(conversation.messages, generate=not conversation.open)
        except TemplateError as err:
            raise blamed(err, conversation, render) from err
        if conversation.open:
            text = text.partition(CUT)[0]
        if conversation.holes:
            text = _SLOT.sub(lambda found: conversation.holes[int(found[1])], text)
        return text, control.budget

    def _placed(self, turn: Turn) -> list[Placed]:
        placed = [Placed(message, index) for index, message in enumerate(turn.messages)]
        if self.settings.strip_billing_header:
            placed = without_billing(placed)
        return hoisted(placed) if self.settings.hoist_system else placed

    def _voice(self, template: ChatTemplate) -> _Voice:
        family, guard = self.family, self._guard
        traits = read(template, {**family.thinking.on, **family.replay.agentic})
        reasons = family.replay.keep != "never"
        replies = Replies(template, traits, guard, self._spelling, reasons=reasons)
        scribe = Scribe(
            family,
            traits,
            guard=guard,
            header=self._header,
            spelling=self._spelling,
            replies=replies,
        )
        return _Voice(template, scribe)

"""One renderer: what is generated from, counted and shown is the same token ids.

Pure CPU, no I/O after loading; safe from several threads.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from families.family import Family
from prompts.assembly import Piece, assembled, tail_of
from prompts.blame import blamed
from prompts.canonical import digest
from prompts.guard import HOLE, Guard, unguard
from prompts.memo import Memo
from prompts.messages import CUT, Conversation, Keep, Scribe
from prompts.pictures import Gallery, ImageLimits, Spreading
from prompts.recall import Context, Memory, memories, names, recalled
from prompts.replies import Replies
from prompts.retention import cleared, edits_of, forgotten
from prompts.selection import templates_of
from prompts.spelling import Spelling
from prompts.splice import Header, Remembered, header_of, mark, spliced
from prompts.stabilise import Placed, hoisted, placed, without_billing
from prompts.template import ChatTemplate, Clock, Folder, TemplateError
from prompts.thinking import controls
from prompts.tokenizer import Tokenizer
from prompts.tools import Function, ToolHeader
from prompts.traits import Message, read
from prompts.vision.folders import sight_of
from prompts.vision.sight import Sight
from turns.errors import InvalidRequestError
from turns.frames import Picture
from turns.reply import Reply
from turns.turn import Turn

SLOT = re.compile(f"{HOLE}([0-9]+){HOLE}")


class PromptSettings(Struct, frozen=True):
    """What an operator may choose about prompts.

    `efforts` gives reasoning budgets in tokens for effort words that the family's template does
    not take itself; None is no limit. `keep_thinking_turns` clears reasoning of older replies;
    it shortens prompts, and breaks the prefix at every turn. A session that was idle for longer
    than `forget_after_idle_s` goes on without what it thought before its last question: its cache
    is gone anyway. `request_templates` lets a request bring a chat template of its own, for
    clients that are trusted: a template may compute without end. Without `unasked_thinking` a
    Messages client gets thinking blocks only if it asked for thinking. `images` bounds the pictures
    of a request.
    """

    strip_billing_header: bool = True
    hoist_system: bool = True
    fast_tokenizer: bool = True
    keep_thinking_turns: int | None = None
    forget_after_idle_s: float | None = None
    request_templates: bool = False
    unasked_thinking: bool = True
    images: ImageLimits = field(default_factory=ImageLimits)
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
    `thinking_budget` limits reasoning, in tokens. `reply_at` is how many ids stand before the
    header of the reply, -1 where that is not known. `spliced` counts replies that the ledger gave.
    `pictures` stand in `ids` at their full length.
    """

    ids: list[int]
    tail: str
    stop_ids: tuple[int, ...]
    thinking_budget: int | None
    reply_at: int = -1
    spliced: int = 0
    pictures: tuple[Picture, ...] = ()


class _Voice(Struct):
    """A template and what writes for it."""

    template: ChatTemplate
    scribe: Scribe
    digest: bytes
    headers: Memo[bytes, tuple[Header | None]]


class Plan(Struct):
    """A turn on its way to a prompt: all but what the ledger knows."""

    voice: _Voice
    budget: int | None
    arguments: dict[str, Any]
    tools: list[Function]
    conversation: Conversation
    context: Context
    memories: list[Memory]

    @property
    def keys(self) -> list[str]:
        """What to look up in the ledger, in one round trip."""
        return [key for memory in self.memories for key in memory.keys]

    def render(self, messages: list[Message], *, generate: bool = True) -> str:
        return self.voice.template.render(
            messages, tools=self.tools, generate=generate, arguments=self.arguments
        )


class Prompter:
    """Turns to prompts, for one model."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        templates: Mapping[str, ChatTemplate],
        family: Family,
        settings: PromptSettings,
        *,
        sight: Sight | None = None,
    ) -> None:
        """`templates` by name: `default`, and `tool_use` where turns with tools have their own.

        Without `sight` the model sees no images.
        """
        self.tokenizer = tokenizer
        self.family = family
        self.settings = settings
        self.sight = sight
        self._guard = Guard(tokenizer.special.values())
        self._header = ToolHeader(self._guard)
        self._spelling = Spelling(family, self._guard)
        self._voices = {name: self._voice(template) for name, template in templates.items()}
        self._own_voices: Memo[str, _Voice] = Memo(16)
        ids = {name: tokenizer.id_of(name) for name in family.stop_tokens}
        self._stops = {name: number for name, number in ids.items() if number is not None}

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
        templates = templates_of(Folder(model_dir), family, clock)
        sight = sight_of(Path(model_dir), family, tokenizer.id_of)
        return cls(tokenizer, templates, family, settings, sight=sight)

    def prepare(self, turn: Turn) -> Prompt:
        """The prompt of a turn. Raises `InvalidRequestError` naming the message and the field."""
        return self.finish(self.plan(turn))

    def render(self, turn: Turn) -> str:
        """The text of the prompt, for people to read."""
        plan = self.plan(turn)
        return unguard(self._text(plan, plan.conversation.messages))

    def plan(self, turn: Turn, *, forget_before: int = 0) -> Plan:
        """All that can be done before the ledger is asked. Raises as `prepare`.

        Reasoning in the messages before number `forget_before` is left out: what a session that
        has gone cold may forget (`retention.last_question`), and must go on forgetting.
        """
        edits = edits_of(turn, thinking_turns=self.settings.keep_thinking_turns)
        messages = forgotten(placed(turn), before=forget_before, turns=edits.thinking_turns)
        plan = self._plan(turn, messages)
        kept = cleared(
            messages,
            edits,
            tokens=lambda: len(self.finish(plan).ids),
            size=lambda text: len(self.tokenizer.encode(text, special=False)),
        )
        return plan if kept == messages else self._plan(turn, kept)

    def _plan(self, turn: Turn, messages: list[Placed]) -> Plan:
        turn, own = self._own_voice(turn)
        control = controls(turn, self.family, self.settings.efforts)
        arguments = {name: self._guard.argument(v) for name, v in control.arguments.items()}
        replay = self.family.replay
        agentic = bool(replay.agentic) and replay.agentic.items() <= control.arguments.items()
        keep: Keep = "always" if agentic else replay.keep
        with _shallow():
            tools = self._header.of(turn.tools)
            named = self._voices.get("tool_use" if tools else "default")
            voice = own or named or self._voices["default"]
            gallery = Gallery(self.sight, self.settings.images) if self.sight else None
            conversation = voice.scribe.write(
                self._stable(messages),
                turn.tools,
                arguments,
                keep=keep,
                word=control.word,
                gallery=gallery,
            )
        context = Context(
            model=self.tokenizer.digest + voice.digest,
            thinking=bool(control.on),
            ordered=turn.api != "chat",
        )
        return Plan(
            voice=voice,
            budget=control.budget,
            arguments=arguments,
            tools=tools,
            conversation=conversation,
            context=context,
            memories=memories(conversation, context),
        )

    def finish(self, plan: Plan, found: Mapping[str, Sequence[int]] | None = None) -> Prompt:
        """The prompt, with the replies in it that the ledger has: `found` by key."""
        header = self._header_of(plan)
        known = recalled(plan.memories, found or {}) if found and header else {}
        with _shallow():
            pieces = self._spliced(plan, known, header) if known and header else None
            if pieces is None:
                known = {}
                pieces = [self._text(plan, plan.conversation.messages)]
        opening = None if plan.conversation.open else header
        pictures: tuple[Picture, ...] = ()
        gallery = plan.conversation.gallery
        if gallery is not None and gallery.pictures:
            spreading = Spreading(gallery.pad, gallery.pictures)
            ids, reply_at = assembled(self.tokenizer, pieces, opening, spreading)
            pictures = spreading.done()
        else:
            ids, reply_at = assembled(self.tokenizer, pieces, opening)
        return Prompt(
            ids=ids,
            tail=tail_of(self.tokenizer, pieces, ids),
            stop_ids=tuple(self._stops.values()),
            thinking_budget=plan.budget,
            reply_at=reply_at,
            spliced=len(known),
            pictures=pictures,
        )

    def opening(self, plan: Plan) -> str:
        """How every reply is opened, "" where that cannot be told from what is around it."""
        header = self._header_of(plan)
        return (header.text or header.lead) if header else ""

    def entries(
        self, plan: Plan, prompt: Prompt, reply: Reply, output: Sequence[int]
    ) -> dict[str, list[int]]:
        """What the ledger shall remember of a finished turn: ids by key, nothing if it must not.

        `output` is all that the engine generated, its stop token included.
        """
        if prompt.reply_at < 0 or not output:
            return {}
        ids = [*prompt.ids[prompt.reply_at :], *output]
        return dict.fromkeys(names(plan.conversation, reply, plan.context), ids)

    def _spliced(
        self, plan: Plan, known: Mapping[int, Sequence[int]], header: Header
    ) -> list[Piece] | None:
        """The rendering in pieces, the known replies as ids; None if one is not found in it."""
        messages = [
            _marked(message, place) if place in known else message
            for place, message in enumerate(plan.conversation.messages)
        ]
        remembered = [Remembered(mark(place), ids) for place, ids in known.items()]
        return spliced(self._text(plan, messages), remembered, header, self._stops)

    def _text(self, plan: Plan, messages: list[Message]) -> str:
        """The rendered text with its guards still in place."""
        conversation = plan.conversation
        try:
            text = plan.render(messages, generate=not conversation.open)
        except TemplateError as err:
            raise blamed(err, conversation, plan.render) from err
        if conversation.open:
            text = text.partition(CUT)[0]
        if conversation.holes:
            text = SLOT.sub(lambda found: conversation.holes[int(found[1])], text)
        return text

    def _header_of(self, plan: Plan) -> Header | None:
        key = msgspec.json.encode(plan.arguments)
        known = plan.voice.headers.get(key)
        if known is None:
            template, traits = plan.voice.template, plan.voice.scribe.traits
            made = header_of(template, traits, plan.arguments, self.tokenizer.controls)
            known = (made,)
            plan.voice.headers.put(key, known)
        return known[0]

    def _stable(self, messages: list[Placed]) -> list[Placed]:
        if self.settings.strip_billing_header:
            messages = without_billing(messages)
        return hoisted(messages) if self.settings.hoist_system else messages

    def _own_voice(self, turn: Turn) -> tuple[Turn, _Voice | None]:
        """The turn without the template that it brought, and what that template makes."""
        source = turn.template_kwargs.get("chat_template")
        if not isinstance(source, str) or not self.settings.request_templates:
            return turn, None
        kwargs = {name: v for name, v in turn.template_kwargs.items() if name != "chat_template"}
        voice = self._own_voices.get(source)
        if voice is None:
            first = next(iter(self._voices.values())).template
            try:
                voice = self._voice(first.written_as(source))
            except ValueError as err:
                raise InvalidRequestError(str(err), param="chat_template") from err
            self._own_voices.put(source, voice)
        return replace(turn, template_kwargs=kwargs), voice

    def _voice(self, template: ChatTemplate) -> _Voice:
        family, guard = self.family, self._guard
        traits = read(template, {**family.thinking.on, **family.replay.agentic})
        replies = Replies(template, traits, guard, self._spelling)
        scribe = Scribe(
            family,
            traits,
            guard=guard,
            header=self._header,
            spelling=self._spelling,
            replies=replies,
        )
        return _Voice(template, scribe, digest(template.source.encode()), Memo(64))


@contextmanager
def _shallow() -> Iterator[None]:
    try:
        yield
    except RecursionError as err:
        msg = "tools or messages are nested too deeply"
        raise InvalidRequestError(msg) from err


def _marked(message: Message, place: int) -> Message:
    """The reply with a mark in its content, by which it is found in the rendering."""
    content = message["content"]
    if isinstance(content, str):
        return message | {"content": mark(place) + content}
    return message | {"content": [{"type": "text", "text": mark(place)}, *content]}

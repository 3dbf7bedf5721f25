"""The prefix doctor: where two prompts part, what it cost, and why.

It reports and touches nothing. What changes without meaning has been taken out before
(`stabilise`); what is left means something to somebody, who has to know.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Literal

from msgspec import Struct

from prompts.canonical import has_reasoning, said, without_reasoning
from prompts.exact import dumps
from prompts.guard import unguard
from prompts.prompter import SLOT, Plan, Prompter
from prompts.splice import mark
from prompts.template import TemplateError
from prompts.traits import Message
from turns.blocks import Block
from turns.turn import Turn

Cause = Literal[
    "billing_header",
    "date_line",
    "identifier",
    "reordered_tools",
    "changed_tools",
    "changed_system",
    "changed_thinking",
    "edited_message",
    "edited_reply",
    "mutated_reasoning",
    "lost_reasoning",
    "dropped_reasoning",
    "retokenised_reply",
    "unknown",
]

_AROUND = 12
_LEAD, _LINE = 24, 64
_MOMENT = re.compile(
    r"\d{4}-\d\d-\d\d|\b\d{1,2}:\d\d\b|\b(?:date|time|today|now)\b|\b(?:mon|tues?|wed(?:nes)?|thu(?:rs)?"
    r"|fri|sat(?:ur)?|sun)(?:day)?\b|\b(?:jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)[a-z]*\b",
    re.IGNORECASE,
)
_PARTS_OF_MOMENT = re.compile(rf"{_MOMENT.pattern}|\d+(?:st|nd|rd|th)?\b", re.IGNORECASE)
_IDENTIFIER = re.compile(r"\b(?=[0-9a-f-]*\d)[0-9a-f]{8,}(?:-[0-9a-f]{4,})*\b", re.IGNORECASE)


class Break(Struct, frozen=True):
    """Where a prompt leaves the one before it.

    `token` is the first token that differs: so many are shared, and `lost` that the engine's cache
    had are not. `where` names the field of the later request (`messages.3`, `tools.0`, `system`).
    `before` and `after` are the texts around the place.
    """

    token: int
    lost: int
    where: str
    cause: Cause
    before: str
    after: str


class Seen(Struct, frozen=True):
    """A turn as it was run: its plan, what the engine was given, what it generated and said."""

    turn: Turn
    plan: Plan
    ids: Sequence[int]
    output: Sequence[int] = ()
    answer: Sequence[Block] = ()
    reply_at: int = -1

    @property
    def cached(self) -> list[int]:
        """The tokens that the next prompt should begin with."""
        if self.output or self.reply_at < 0:
            return [*self.ids, *self.output]
        return list(self.ids[: self.reply_at])


def seen(
    prompter: Prompter,
    turn: Turn,
    *,
    found: Mapping[str, Sequence[int]] | None = None,
    output: Sequence[int] = (),
    blocks: Sequence[Block] = (),
) -> Seen:
    """A turn seen anew; `found` is what the ledger has, `output` and `blocks` what was answered."""
    plan = prompter.plan(turn)
    prompt = prompter.finish(plan, found)
    return Seen(turn, plan, prompt.ids, output, blocks, prompt.reply_at)


def diagnosed(prompter: Prompter, before: Seen, after: Seen) -> Break | None:
    """The break between a turn and one that should continue it; None if it does."""
    cached = before.cached
    token = _shared(cached, after.ids)
    # the last token of an answer is never in the engine's cache: how it is written breaks nothing
    if token >= len(cached) - bool(before.output):
        return None
    decode = prompter.tokenizer.decode
    place = _place(after, decode(after.ids[:token]))
    found = _Found(before, after, place)
    varying = (
        "" if found.reply else _varying(*(_line(decode, ids, token) for ids in (cached, after.ids)))
    )
    texts = (decode(ids[max(0, token - _AROUND) : token + _AROUND]) for ids in (cached, after.ids))
    return Break(token, len(cached) - token, found.where(), varying or found.cause(), *texts)


class _Found:
    """The message at which the prompts part, in both turns."""

    def __init__(self, before: Seen, after: Seen, place: int) -> None:
        self.before, self.after, self.place = before, after, place
        self.head = place < _prologue(after)
        self.reply = place < len(after.plan.conversation.replies) and (
            after.plan.conversation.replies[place] is not None
        )

    @property
    def tools(self) -> bool:
        """Whether it is the tools that differ, which templates write at the head."""
        same = self.before.plan.tools == self.after.plan.tools
        return not same and self.place <= _prologue(self.after) and not self._system_differs()

    def where(self) -> str:
        conversation = self.after.plan.conversation
        if self.tools:
            pairs = enumerate(zip_longest(self.before.plan.tools, self.after.plan.tools))
            return f"tools.{next((n for n, (a, b) in pairs if a != b), 0)}"
        if self.place >= len(conversation.origin):
            return "end"
        return conversation.origin[self.place]

    def cause(self) -> Cause:
        if self.tools:
            old, new = (sorted(map(dumps, seen.plan.tools)) for seen in (self.before, self.after))
            return "reordered_tools" if old == new else "changed_tools"
        if self.reply:
            return self._reply_cause()
        if self.before.plan.arguments != self.after.plan.arguments and not self._differs():
            return "changed_thinking"
        if self._system_differs():
            return "changed_system"
        return "edited_message" if self._differs() else "unknown"

    def _reply_cause(self) -> Cause:
        conversation = self.after.plan.conversation
        old, new = said(self._old_reply()), said(conversation.replies[self.place] or ())
        if without_reasoning(old) != without_reasoning(new):
            return "edited_reply"
        thought, sent = has_reasoning(old), has_reasoning(new)
        if thought and not conversation.kept[self.place]:
            return "dropped_reasoning"
        if thought and not sent:
            return "lost_reasoning"
        return "mutated_reasoning" if old != new else "retokenised_reply"

    def _old_reply(self) -> Sequence[Block]:
        replies = self.before.plan.conversation.replies
        return (replies[self.place] or ()) if self.place < len(replies) else self.before.answer

    def _system_differs(self) -> bool:
        return self.head and self._differs()

    def _differs(self) -> bool:
        old, new = (seen.plan.conversation.messages for seen in (self.before, self.after))
        return old[self.place : self.place + 1] != new[self.place : self.place + 1]


def _prologue(seen: Seen) -> int:
    """How many messages stand before the conversation proper."""
    return int(seen.plan.conversation.messages[0]["role"] == "system")


def _shared(left: Sequence[int], right: Sequence[int]) -> int:
    """How many tokens two prompts share at their beginning: by halves, for comparing is cheap."""
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _place(seen: Seen, shared: str) -> int:
    """The first message that does not stand whole in the shared text."""
    conversation = seen.plan.conversation
    leads = _leads(seen.plan)
    at = 0
    for place, message in enumerate(conversation.messages):
        blocks = conversation.replies[place]
        if blocks is None:
            needles = [leads.get(place, "") + _text(message)]
        else:
            needles = list(_said(blocks, kept=conversation.kept[place]))
        for needle in filter(None, needles):
            found = shared.find(needle, at)
            if found < 0:
                return place
            at = found + len(needle)
    return len(conversation.messages)


def _leads(plan: Plan) -> dict[int, str]:
    """What the template writes right before each message: a short one is found by it."""
    messages = [
        message | {"content": mark(place) + message["content"]}
        if reply is None and isinstance(message["content"], str)
        else message
        for place, (message, reply) in enumerate(
            zip(plan.conversation.messages, plan.conversation.replies, strict=True)
        )
    ]
    try:
        text = plan.render(messages)
    except TemplateError:
        return {}
    places = ((place, text.find(mark(place))) for place in range(len(messages)))
    return {place: unguard(text[max(0, at - _LEAD) : at]) for place, at in places if at >= 0}


def _text(message: Message) -> str:
    """A message's text, up to where trusted text was put into it."""
    content = message["content"]
    text = content if isinstance(content, str) else content[0].get("text", "")
    return SLOT.split(unguard(text))[0].rstrip()


def _said(blocks: Sequence[Block], *, kept: bool) -> Iterator[str]:
    for kind, value in said(blocks):
        if kind == "calls":
            yield value[0]
        elif kind == "text" or kept:
            yield value


def _line(decode: Callable[[Sequence[int]], str], ids: Sequence[int], token: int) -> str:
    """The line on which a token stands, as far as it is near."""
    head = decode(ids[max(0, token - _LINE) : token]).rpartition("\n")[2]
    return head + decode(ids[token : token + _LINE]).partition("\n")[0]


def _varying(old: str, new: str) -> Cause | Literal[""]:
    """What is known to change from session to session or day to day."""
    if "x-anthropic-billing-header" in old or "x-anthropic-billing-header" in new:
        return "billing_header"
    if _MOMENT.search(old) and _alike(_PARTS_OF_MOMENT, old, new):
        return "date_line"
    return "identifier" if _alike(_IDENTIFIER, old, new) else ""


def _alike(pattern: re.Pattern[str], old: str, new: str) -> bool:
    """Whether only what the pattern finds differs; the lines may be cut short."""
    left, right = pattern.sub("#", old), pattern.sub("#", new)
    return old != new and (left.startswith(right) or right.startswith(left))

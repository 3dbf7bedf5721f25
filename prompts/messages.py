"""From a turn to the messages that a chat template takes.

Rule of the file: what a client means decides, not how its API spells it. null, "" and absent are
the same; adjacent assistant messages are one reply; a tool result is a tool message wherever it
came in; nothing is dropped in silence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, Literal

from msgspec import Struct, field

from families.family import Family
from prompts.guard import HOLE, Guard
from prompts.pictures import Gallery
from prompts.replies import Replies, hole
from prompts.spelling import Spelling
from prompts.stabilise import Placed
from prompts.tools import ToolHeader
from prompts.traits import Message, Traits
from turns.blocks import Block, Image, Text, ToolCall, ToolReference, ToolResult
from turns.blocks import Message as TurnMessage
from turns.errors import InvalidRequestError
from turns.turn import Tool

CUT = f"{HOLE}e{HOLE}"
"""Where the last message ends that the model shall go on writing."""
_REMINDER = "<system-reminder>"

Keep = Literal["always", "tool_loop", "never"]


class Conversation(Struct):
    """Template messages.

    `origin` names for each the field of the request it came from; `replies` the blocks of
    those that are replies; `kept` whether the policy keeps all of a reply. `holes` are the trusted
    texts that stand in them by number. `open`: the model goes on writing the last message.
    `gallery` has the pictures in them, None where the model sees none.
    """

    messages: list[Message] = field(default_factory=list)
    origin: list[str] = field(default_factory=list)
    replies: list[Sequence[Block] | None] = field(default_factory=list)
    kept: list[bool] = field(default_factory=list)
    holes: list[str] = field(default_factory=list)
    open: bool = False
    gallery: Gallery | None = None

    def add(
        self,
        message: Message,
        origin: str,
        *,
        reply: Sequence[Block] | None = None,
        kept: bool = False,
    ) -> None:
        self.messages.append(message)
        self.origin.append(origin)
        self.replies.append(reply)
        self.kept.append(kept)


class Scribe:
    """Writes conversations for one template. One instance serves all turns of a model."""

    def __init__(
        self,
        family: Family,
        traits: Traits,
        *,
        guard: Guard,
        header: ToolHeader,
        spelling: Spelling,
        replies: Replies,
    ) -> None:
        self.family = family
        self.traits = traits
        self.guard = guard
        self.header = header
        self.spelling = spelling
        self.replies = replies

    def write(
        self,
        placed: Sequence[Placed],
        tools: Sequence[Tool],
        arguments: Mapping[str, Any],
        *,
        keep: Keep,
        word: str = "",
        gallery: Gallery | None = None,
    ) -> Conversation:
        """The conversation. Raises `InvalidRequestError` for what the model cannot take.

        `keep` is the policy for earlier reasoning in this turn; `word` a switch of the template's
        at the end of the system message; `gallery` takes the pictures.
        """
        writing = _Writing(self, tools, arguments, keep, word)
        writing.out.gallery = gallery
        writing.all(_joined(placed))
        return _alternating(writing.out) if self.traits.alternate else writing.out


class _Writing:
    """One turn being written."""

    def __init__(
        self,
        by: Scribe,
        tools: Sequence[Tool],
        arguments: Mapping[str, Any],
        keep: Keep,
        word: str,
    ) -> None:
        self.out = Conversation()
        self._word = word
        self._keep = keep
        self._by = by
        self._tools = tools
        self._arguments = arguments
        self._names: dict[str, str] = {}
        self._ahead = ""

    def all(self, placed: Sequence[Placed]) -> None:
        keep = self._keep
        asked = max((at for at, one in enumerate(placed) if asks(one.message)), default=-1)
        if not (placed and placed[0].is_system):
            self._lead("", placed[0].where if placed else "messages")
        for at, one in enumerate(placed):
            if one.is_system:
                self._system(one, leading=at == 0)
            elif one.message.role == "assistant":
                kept = keep == "always" or (keep == "tool_loop" and at > asked)
                self._reply(one, kept=kept and not one.forgot, last=at == len(placed) - 1)
            else:
                self._others(one)
        if self._ahead:
            self._say("user", "", placed[0].where)

    def _system(self, placed: Placed, *, leading: bool) -> None:
        text = self._text(placed.message.blocks, placed.where)
        if leading:
            self._lead(text, placed.where)
        elif self._by.traits.late_system:
            self._say("system", text, placed.where)
        elif text:
            wrapped = (
                text if text.startswith(_REMINDER) else f"{_REMINDER}\n{text}\n</system-reminder>"
            )
            self._say("user", wrapped, placed.where)

    def _lead(self, text: str, where: str) -> None:
        """The head of the prompt, with the tools in it where the template would not show them."""
        by = self._by
        shown = [] if by.traits.tools else by.header.of(self._tools)
        tools = hole(self.out.holes, by.spelling.tools(shown)) if shown else ""
        text = "\n".join(filter(None, (text, self._word)))
        head = "\n\n".join(filter(None, (text, tools)))
        if not by.traits.system:
            self._ahead = head
        elif head:
            self._say("system", head, where)

    def _reply(self, placed: Placed, *, kept: bool, last: bool) -> None:
        blocks = placed.message.blocks
        for block in blocks:
            if isinstance(block, ToolCall):
                self._names[block.id] = block.name
        message = self._by.replies.message(
            blocks, keep=kept, holes=self.out.holes, arguments=self._arguments
        )
        if last and blocks and isinstance(blocks[-1], Text) and "tool_calls" not in message:
            message["content"] += CUT
            self.out.open = True
        message["content"] = self._shaped(message["content"])
        # a family that does not reason has nothing to drop
        whole = kept or (self._by.family.thinking.default == "none" and not placed.forgot)
        self.out.add(message, placed.where, reply=blocks, kept=whole)

    def _others(self, placed: Placed) -> None:
        """A user's or tool's message: results become tool messages, in the order of the blocks."""
        tool = placed.message.role == "tool"
        is_result = lambda block: tool or isinstance(block, ToolResult)  # noqa: E731
        runs = [(kind, list(run)) for kind, run in groupby(placed.message.blocks, is_result)]
        for at, (kind, run) in enumerate(runs):
            if kind:
                self._results(run, placed.where)
            elif at > 0 and all(isinstance(b, Text) and _reminds(b) for b in run):
                # a harness's note on a result: a user message here would end the tool loop
                note = self._text(run, placed.where)
                self._append(note)
            else:
                self._say("user", self._content(run, placed.where), placed.where)
        if not runs:
            self._say("user", "", placed.where)

    def _results(self, run: Sequence[Block], where: str) -> None:
        for block in run:
            result = block if isinstance(block, ToolResult) else ToolResult("", _visible(block))
            content = self._content(result.content, where)
            if result.is_error:
                content = _failed(content)
            if not self._by.traits.tool_role:
                self._say("user", _wrapped(content), where)
                continue
            name = result.name or self._names.get(result.call_id, "")
            self.out.add(
                {
                    "role": "tool",
                    "content": self._shaped(content),
                    "tool_call_id": self._by.guard(result.call_id),
                    "name": self._by.guard(name),
                },
                where,
            )

    def _append(self, note: str) -> None:
        last = self.out.messages[-1]
        content = last["content"]
        if isinstance(content, str):
            last["content"] = f"{content}\n\n{note}" if content else note
        else:
            last["content"] = [*content, {"type": "text", "text": note}]

    def _say(self, role: str, content: str | list[Message], where: str) -> None:
        if self._ahead and role == "user":
            content = _before(self._ahead, content)
            self._ahead = ""
        self.out.add({"role": role, "content": self._shaped(content)}, where)

    def _shaped(self, content: str | list[Message]) -> str | list[Message]:
        if isinstance(content, str) and self._by.traits.parts:
            return [{"type": "text", "text": content}]
        return content

    def _text(self, blocks: Sequence[Block], where: str) -> str:
        content = self._content(blocks, where)
        if isinstance(content, str):
            return content
        msg = f"{where}: an image cannot stand in a system message"
        raise InvalidRequestError(msg, param=f"{where}.content")

    def _content(self, blocks: Sequence[Block], where: str) -> str | list[Message]:
        """Blocks as one text, lines between them; as parts where there are images among them."""
        parts: list[Message] = []
        for at, block in enumerate(blocks):
            match block:
                case Text(text=text) if text:
                    parts.append({"type": "text", "text": self._by.guard(text)})
                case ToolReference(name=name):
                    parts.append(
                        {"type": "text", "text": self._by.header.expanded(name, self._tools)}
                    )
                case Image():
                    parts.append(self._image(f"{where}.content.{at}", block))
                case _:
                    pass
        if any(part["type"] == "image" for part in parts):
            return parts
        return "\n".join(part["text"] for part in parts)

    def _image(self, where: str, image: Image) -> Message:
        """A picture's part. Its digest is no template's business; what is remembered of replies is
        found by it.
        """
        gallery = self.out.gallery
        if gallery is None:
            title = self._by.family.title
            msg = f"{where}: {title}, as served here, does not see images; remove the image"
            raise InvalidRequestError(msg, param=where)
        if image.url:
            msg = (
                f"{where}: images are not fetched from URLs here; send the image itself, in base64"
            )
            raise InvalidRequestError(msg, param=where)
        if not self._by.traits.images:
            msg = f"{where}: the chat template of this model takes no images; remove the image"
            raise InvalidRequestError(msg, param=where)
        return {"type": "image", "digest": gallery.look(image.data, where).digest}


def _joined(placed: Sequence[Placed]) -> list[Placed]:
    """With the system messages at the head as one, and each run of assistant messages as one."""
    head = 0
    while head < len(placed) and placed[head].is_system:
        head += 1
    out = [_one_head(placed[:head])] if head else []
    for reply, run in groupby(placed[head:], lambda one: one.message.role == "assistant"):
        members = list(run)
        out += [_one_reply(members)] if reply else members
    return out


def _one_head(run: Sequence[Placed]) -> Placed:
    """An empty line stands between what were messages, a line's end between their blocks."""
    blocks = [block for one in run for block in one.message.blocks]
    texts = (_lines(one.message.blocks) for one in run)
    text = Text("\n\n".join(filter(None, texts)))
    others = (block for block in blocks if not isinstance(block, Text))
    return Placed(TurnMessage("system", (text, *others)), run[0].where)


def _lines(blocks: Sequence[Block]) -> str:
    return "\n".join(block.text for block in blocks if isinstance(block, Text) and block.text)


def _one_reply(run: Sequence[Placed]) -> Placed:
    if len(run) == 1:
        return run[0]
    blocks = tuple(block for one in run for block in one.message.blocks)
    forgot = any(one.forgot for one in run)
    return Placed(TurnMessage("assistant", blocks), run[0].where, forgot)


def asks(message: TurnMessage) -> bool:
    """Whether a user asks something here, rather than a tool answering."""
    if message.role != "user":
        return False
    if not any(isinstance(block, ToolResult) for block in message.blocks):
        return True
    return any(
        isinstance(block, Image) or (isinstance(block, Text) and not _reminds(block))
        for block in message.blocks
    )


def _reminds(block: Text) -> bool:
    return block.text.lstrip().startswith(_REMINDER)


def _visible(block: Block) -> tuple[Text | Image | ToolReference, ...]:
    return (block,) if isinstance(block, Text | Image | ToolReference) else ()


def _failed(content: str | list[Message]) -> str | list[Message]:
    """The result of a call that failed, marked so that the model can see it."""
    if isinstance(content, list):
        return [{"type": "text", "text": "Error:"}, *content]
    says = content.lstrip()[:40].lower()
    return content if says.startswith(("error", "<tool_use_error>")) else f"Error: {content}"


def _wrapped(content: str | list[Message]) -> str | list[Message]:
    if isinstance(content, list):
        return content
    return f"<tool_response>\n{content}\n</tool_response>"


def _before(head: str, content: str | list[Message]) -> str | list[Message]:
    if isinstance(content, list):
        return [{"type": "text", "text": f"{head}\n\n"}, *content]
    return f"{head}\n\n{content}" if content else head


def _alternating(out: Conversation) -> Conversation:
    """With runs of one role as one message, for templates that insist on turns."""
    merged = Conversation(holes=out.holes, open=out.open, gallery=out.gallery)
    for place, (message, origin) in enumerate(zip(out.messages, out.origin, strict=True)):
        last = merged.messages[-1] if merged.messages else None
        if last is None or message["role"] != last["role"] or message["role"] == "tool":
            merged.add(dict(message), origin, reply=out.replies[place], kept=out.kept[place])
        elif isinstance(last["content"], str) and isinstance(message["content"], str):
            last["content"] = "\n\n".join(filter(None, (last["content"], message["content"])))
            last |= {key: value for key, value in message.items() if key not in last}
        else:
            last["content"] = [*_parts(last["content"]), *_parts(message["content"])]
    return merged


def _parts(content: str | list[Message]) -> list[Message]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content

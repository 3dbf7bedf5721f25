"""The machine: one table, one position in it, and what is held.

Rule of the file: everything that moves through a table lives here, and nothing here knows a
family. Each character is sunk once where its state says; only the start of a possible marker and
the text of a tentative state are held, and only the latter is ever read again.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from parsers.calls import CallDesk
from parsers.compiled import Node, Table, Way
from parsers.emitter import Block, Emitter
from parsers.grammar import Action, Reads
from parsers.readers import READERS, Reader
from parsers.schema import Schemas
from turns.events import Cut, Event

_STRIDE = 256  # characters that a draft reads at once: more than the longest marker
_WHITE = re.compile(r"\s*")
Left = tuple[str, int]  # a text and the position from which it is still to be read


class Machine:
    """Reads text through a table: `run` any number of times, then `finish` once.

    `strict`: the text is a draft of calls inside reasoning. The machine halts at the first visible
    character, which proves that it was none; `rest` is the text from there on.
    """

    def __init__(
        self, table: Table, schemas: Schemas, emitter: Emitter, *, start: Node, strict: bool = False
    ) -> None:
        self._table = table
        self._node = start
        self._strict = strict
        self._held = ""
        self._journal: list[str] | None = None
        self._origin = start
        self._bare = False
        self._header: list[str] = []
        self._reader: Reader | None = None
        self._draft: Draft | None = None
        self._restore = table.specials.restore if table.specials else None
        self.desk = CallDesk(schemas, emitter, table.specials, self._confirm)
        self.emitter = emitter
        self.halted = False
        self.rest = ""
        self._sinks: dict[Reads, Callable[[str], None]] = {
            "reasoning": emitter.reasoning,
            "value": self.desk.value,
        }
        if not strict:
            self._sinks["text"] = emitter.text
        self._plain = self._sinks.get(start.reads)

    @property
    def reasoning(self) -> bool:
        return self._node.reads == "reasoning"

    def run(self, text: str, *, final: bool = False) -> None:
        """Read more text. `final`: no more will come, so nothing is held."""
        if self._held:
            text = self._held + text
            self._held = ""
        elif not text:
            return
        elif self.halted:
            self.rest += text
            return
        elif self._plain is not None and text.isascii() and self._node.lexicon.absent(text):
            self._plain(text)  # the common case: no marker begins here
            return
        pos = 0
        emitter = self.emitter
        while pos < len(text):
            if self._reader is not None:
                text, pos = self._read(text, pos, self._reader, final=final)
            elif self._draft is not None:
                text, pos = self._sketch(text, pos, self._draft, final=final)
            else:
                text, pos = self._scan(text, pos, final=final)
            if self.halted or emitter.stopped is not None:
                self._plain = None
                return

    # Reading what a state reads.

    def _scan(self, text: str, pos: int, *, final: bool) -> Left:
        """Up to the next marker, and over it."""
        node = self._node
        if node.reads == "space":
            return self._skip(node, text, pos, final=final)
        start, end = node.lexicon.find(text, pos, final=final)
        if start > pos:
            taken = self._sink(node, text if start - pos == len(text) else text[pos:start])
            if taken < start - pos:
                return self._misfit(node, text, pos + taken)
        if end < 0:
            self._held = text[start:]
            return text, len(text)
        way = node.ways[text[start:end]]
        if way.first and not self.emitter.blank:
            # Not here: its first character is ordinary text, the rest is looked at again.
            self._sink(node, text[start])
            return text, start + 1
        return self._follow(node, way, text, start, end)

    def _skip(self, node: Node, text: str, pos: int, *, final: bool) -> Left:
        """Over whitespace to a marker that must stand right behind it."""
        white = _WHITE.match(text, pos)
        start = white.end() if white else pos
        if self._journal is not None:
            self._journal.append(text[pos:start])
        if start == len(text):
            return text, start
        end = node.lexicon.at(text, start, final=final)
        if end < 0:
            return self._misfit(node, text, start)
        if end == 0:
            self._held = text[start:]
            return text, len(text)
        return self._follow(node, node.ways[text[start:end]], text, start, end)

    def _sink(self, node: Node, chunk: str) -> int:
        """Ordinary text goes where its state says. Returns how many characters fitted."""
        restore = self._restore
        match node.reads:
            case "text":
                if self._strict and not chunk.isspace():
                    return len(chunk) - len(chunk.lstrip())
                self.emitter.text(restore(chunk) if restore else chunk)
            case "reasoning":
                self.emitter.reasoning(restore(chunk) if restore else chunk)
            case "value":
                self.desk.value(restore(chunk) if restore else chunk)
            case "header":
                return self._gather(node, chunk)
            case _:
                pass
        return len(chunk)

    def _gather(self, node: Node, chunk: str) -> int:
        barred = node.barred.search(chunk) if node.barred else None
        fits = barred.start() if barred else len(chunk)
        fits = min(fits, node.state.limit - sum(map(len, self._header)))
        self._header.append(chunk[:fits])
        if self._journal is not None:
            self._journal.append(chunk[:fits])
        return fits

    def _misfit(self, node: Node, text: str, pos: int) -> Left:
        """Text that does not fit its state, from pos on."""
        if self._strict and node.reads == "text":
            return self._halt(text[pos:])
        if self._journal is not None and node.tentative:
            return self._fall_back(text[pos:])
        self._header.clear()
        self._enter(node.otherwise)
        return text, pos

    def _fall_back(self, rest: str) -> Left:
        """What was tentative is ordinary text: the marker as text, the rest read again."""
        marker, *after = self._journal or [""]
        again = "".join(after) + rest
        if not marker:
            marker, again = again[:1], again[1:]
        self._journal = None
        self._reader = None
        self._header.clear()
        node = self._origin
        while node.reads == "space":
            node = node.otherwise
        self._enter(node)
        if self._sink(node, marker) < len(marker):
            return self._halt(again)
        return again, 0

    def _halt(self, rest: str) -> Left:
        self.halted = True
        self.rest = rest
        return "", 0

    # Moving.

    def _follow(self, node: Node, way: Way, text: str, start: int, end: int) -> Left:
        """Take the way that a marker opens."""
        if way.draft:
            self._draft = Draft(self._table, self.desk.schemas, self.emitter)
            self._plain = None
            return text, start
        to, do = way.node, way.do
        if way.routes:
            route = way.route(self._table.specials.restore("".join(self._header)), self.desk)
            if route is None:
                return self._misfit(node, text, start)
            to, do = route
        self._header.clear()
        if to.tentative and self._journal is None:
            self._origin, self._bare = node, way.first
            self._journal = ["" if way.keep else text[start:end]]
        elif self._journal is not None and not way.keep:
            self._journal.append(text[start:end])
        if not to.tentative:
            self._confirm()
        self._act(do, to)
        self._enter(to)
        return text, start if way.keep else end

    def _act(self, actions: tuple[Action, ...], to: Node) -> None:
        for action in actions:
            self.desk.act(action, to.state.trim)

    def _confirm(self) -> None:
        """The marker was one: whatever was open in text or reasoning ends here."""
        self._journal = None
        if self.emitter.block is not Block.CALL:
            self.emitter.mark()

    def _enter(self, node: Node) -> None:
        self._node = node
        self._plain = self._sinks.get(node.reads)
        if node.reads == "reader":
            self.desk.ends = node.ends
            self._reader = READERS[node.state.reader](self.desk)
        elif node.reads in ("text", "reasoning") and self.emitter.block is Block.CALL:
            self.desk.cut()

    def _read(self, text: str, pos: int, reader: Reader, *, final: bool) -> Left:
        """A reader has the text until it is done or meets what does not fit."""
        at = reader.feed(text, pos, final=final)
        if self._journal is not None:
            self._journal.append(text[pos:at])
        if reader.failed:
            return self._broken(text, at, reader)
        if reader.done:
            self._reader = None
            self._act(self._node.state.done, self._node)
            self._enter(self._node.then)
            return text, at
        self._held = text[at:]
        return text, len(text)

    def _broken(self, text: str, at: int, reader: Reader) -> Left:
        """The body does not fit. A call that was started is cut; else its text is shown."""
        node = self._node
        self._reader = None
        if self._journal is not None and node.tentative:
            return self._fall_back(text[at:])
        if reader.finish():
            self._act(node.state.done, node)
            self._enter(node.then)
        elif self.emitter.block is Block.CALL:
            self.desk.cut()
            self._enter(node.otherwise)
        else:
            if self._strict:
                return self._halt(text[at:])
            if node.lost.reads == "text":
                self.emitter.text(self.desk.restore("".join(reader.raw or ())))
            self._enter(node.lost)
        return text, at

    # A call inside reasoning.

    def _sketch(self, text: str, pos: int, draft: Draft, *, final: bool) -> Left:
        """Behind a call marker in reasoning: a real call only if the output ends with it."""
        part = text[pos : pos + _STRIDE]
        more = pos + len(part) < len(text)
        closed, end = self._node.closers.find(part, 0, final=final and not more)
        rest = draft.feed(part[:closed])
        if end < 0 and rest is None:
            if more:
                return text, pos + closed
            self._held = part[closed:]
            return text, len(text)
        self._draft = None
        self._plain = self._sinks.get(self._node.reads)
        self.emitter.reasoning(self.desk.restore(draft.text(rest or "")))
        return (rest or "") + text[pos + closed :], 0

    # Ending.

    def finish(self, reason: Cut | None) -> None:
        """The output ended. `reason` is why it was cut off; None when the engine stopped itself."""
        if self.emitter.stopped is None:
            open_call = self.emitter.block is Block.CALL
            if open_call and self._held not in self._node.ways:
                self._held = ""  # half a marker in a call that is cut: markup is no value
            if self._held:
                self.run("", final=True)
            self._end(reason)
        if self.emitter.block is Block.CALL:
            self.emitter.cut(reason or "malformed")
        self.emitter.end()

    def _end(self, reason: Cut | None) -> None:
        draft, reader = self._draft, self._reader
        if draft is not None:
            events = draft.calls() if reason is None else None
            if events is None:
                self.emitter.reasoning(self.desk.restore(draft.text("")))
            else:
                self.emitter.replay(events, draft.count)
        elif self._journal is not None:
            self._leave(reason)
        elif reader is not None:
            if reason is None and reader.finish():
                self._act(self._node.state.done, self._node)
            elif reason is None and self.emitter.block is not Block.CALL:
                self._broken("", 0, reader)
        elif reason is None:
            self._act(self._node.state.at_end, self._node)

    def _leave(self, reason: Cut | None) -> None:
        """The output ended in a tentative state."""
        if self._origin.reads == "value":
            ending: tuple[Action, ...] = ("end_value",)
            self._act(self._node.state.at_end or ending if reason is None else ending, self._node)
        elif reason is None or self._bare:
            while self._journal is not None and not self.halted:
                again, _ = self._fall_back("")
                self.run(again, final=True)


class Draft:
    """A call inside reasoning, read on the side until it is known what it was."""

    def __init__(self, table: Table, schemas: Schemas, emitter: Emitter) -> None:
        self._raw: list[str] = []
        self._emitter = emitter.sibling()
        table = table.drafts
        self._machine = Machine(table, schemas, self._emitter, start=table.start, strict=True)

    def feed(self, text: str) -> str | None:
        """Read on. None while it may be a call; else the text that it left unread."""
        self._raw.append(text)
        self._machine.run(text)
        return self._machine.rest if self._machine.halted else None

    def text(self, rest: str) -> str:
        """All that was read, but for the rest."""
        whole = "".join(self._raw)
        return whole[: len(whole) - len(rest)]

    @property
    def count(self) -> int:
        return self._emitter.ready

    def calls(self) -> list[Event] | None:
        """The events of its calls; None unless all are complete and of declared tools."""
        machine, emitter = self._machine, self._emitter
        machine.finish(None)
        real = emitter.ready and emitter.ready == emitter.made and not machine.desk.undeclared
        return emitter.take() if real and not machine.halted else None

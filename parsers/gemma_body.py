"""The arguments of a Gemma call, from behind the opening bracket: `key:value, …}`.

Strings stand between quote tokens and are verbatim; keys are bare and may hold spaces. JSON is
taken too, since that is what a constraint makes these models write.
"""

from __future__ import annotations

from parsers.literals import Dialect, LiteralReader
from parsers.readers import Desk, register


class GemmaArguments:
    def __init__(self, desk: Desk, *, quote: str, closer: str) -> None:
        self._desk = desk
        token = desk.spell(quote)
        dialect = Dialect(quotes=(token, '"'), verbatim=(token,), loose=True)
        self._literal = LiteralReader(desk.arguments, dialect, desk.restore)
        self._literal.enter(closer)
        self.raw: list[str] | None = None
        self.done = False
        self.failed = False

    def feed(self, text: str, pos: int, *, final: bool = False) -> int:
        at = self._literal.feed(text, pos, final=final)
        self.failed = self._literal.failed
        if self._literal.done:
            self.done = True
            self._desk.complete()
        return at

    def finish(self) -> bool:
        return False


register(
    {
        "gemma4_arguments": lambda desk: GemmaArguments(desk, quote='<|"|>', closer="}"),
        "gemma4_parens": lambda desk: GemmaArguments(desk, quote='<|"|>', closer=")"),
        "functiongemma_arguments": lambda desk: GemmaArguments(desk, quote="<escape>", closer="}"),
    }
)

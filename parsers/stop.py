"""Stop strings, on visible text only. Holds what could still be the beginning of one."""

from __future__ import annotations

from parsers.lexicon import Lexicon


class StopStrings:
    """Watches one turn's visible text. `matched` is the stop string once it came."""

    __slots__ = ("_held", "_lexicon", "matched")

    def __init__(self, strings: tuple[str, ...]) -> None:
        self._lexicon = Lexicon(string for string in strings if string)
        self._held = ""
        self.matched: str | None = None

    @property
    def holds(self) -> bool:
        return bool(self._held)

    def feed(self, text: str) -> str:
        """The text that may go on; what stands before a stop string when it is matched."""
        text = self._held + text
        self._held = ""
        start, end = self._lexicon.find(text, 0)
        if end >= 0:
            self.matched = text[start:end]
        else:
            self._held = text[start:]
        return text[:start]

    def flush(self) -> str:
        """What was held, when something else than text follows."""
        text, self._held = self._held, ""
        return text

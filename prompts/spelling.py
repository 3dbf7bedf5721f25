"""What a template cannot say, said in the family's own wire syntax.

Many published templates know no tools, no calls, or only one call and no text beside it. What they
leave out is written as the model itself would write it, by its grammar, so that a conversation is
never cut to what its template happens to carry.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from families.family import Family
from parsers import grammars
from parsers.grammar import Grammar
from parsers.write import write
from prompts.exact import dumps, loads, marked
from prompts.guard import Guard
from prompts.tools import CUSTOM_ARGUMENT, Function
from turns.blocks import ToolCall

_THINK = ("<think>\n", "\n</think>\n\n")
_EXAMPLE = ToolCall("call_0", "function_name", '{"parameter": "value"}')


class Spelling:
    """Writes reasoning, calls and tools for one family, guarded."""

    def __init__(self, family: Family, guard: Guard) -> None:
        self._guard = guard
        self._grammar = _grammar(family)
        reasoning = self._grammar.reasoning if self._grammar else None
        self._think = reasoning.spelling if reasoning else _THINK

    def thought(self, reasoning: str) -> str:
        """Reasoning between its markers, with the line ends that stand there."""
        return self._think[0] + self._guard(reasoning.strip("\n")) + self._think[1]

    def calls(self, calls: Sequence[ToolCall]) -> str:
        """Calls one after the other."""
        return self._write([self._guarded(call) for call in calls])

    def tools(self, tools: Sequence[Function]) -> str:
        """What a system message says about tools where the template says nothing."""
        rows = "\n".join(map(dumps, tools))
        return (
            "# Tools\n\nYou may call functions to help with the user's request. "
            f"Their signatures, as JSON:\n<tools>\n{rows}\n</tools>\n\n"
            f"To call a function, write:\n{self._write([_EXAMPLE])}"
        )

    def _write(self, calls: Sequence[ToolCall]) -> str:
        if self._grammar is not None:
            try:
                return write(self._grammar, calls)
            except ValueError:
                pass  # a grammar without calls, or arguments that are no object
        return "\n".join(map(_in_tags, calls))

    def _guarded(self, call: ToolCall) -> ToolCall:
        return msgspec.structs.replace(
            call,
            id=self._guard(call.id),
            name=self._guard(call.name),
            arguments=self.arguments(call),
        )

    def arguments(self, call: ToolCall) -> str:
        """As `arguments_text`, each string in it guarded: a grammar, or a template that reads them,
        writes them between marks of its own.
        """
        text = arguments_text(call)
        try:
            return dumps(marked(self._guard.value(loads(text))))
        except ValueError:
            return self._guard(text)


def arguments_text(call: ToolCall) -> str:
    """Arguments as templates write them: one space behind `,` and `:`; what is no JSON stays."""
    if call.kind == "custom":
        return dumps({CUSTOM_ARGUMENT: call.arguments})
    try:
        return dumps(marked(loads(call.arguments))) if call.arguments.strip() else "{}"
    except ValueError:
        return call.arguments


def _in_tags(call: ToolCall) -> str:
    body = f'{{"name": {dumps(call.name)}, "arguments": {call.arguments}}}'
    return f"<tool_call>\n{body}\n</tool_call>"


def _grammar(family: Family) -> Grammar | None:
    try:
        return grammars.get(family.grammar)
    except LookupError:
        return None

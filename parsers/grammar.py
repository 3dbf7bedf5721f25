"""What a grammar is: the table that drives the machine.

Rule of the file: data only. A state says what its ordinary text is (`reads`) and where each marker
leads (`on`); a missing marker is ordinary text. The machine knows these words and no family.

What a state reads:
  text       visible text                     reasoning  reasoning text
  skip       noise, dropped                   space      whitespace only; anything else: `otherwise`
  header     gathered for the next `routes`   value      one argument's value
  reader     a body with a syntax of its own; the `reader` of that name takes over until it is done

A `tentative` state holds what it reads until a state that is not tentative is reached. When the
text does not fit, all of it goes back: the marker that led here becomes ordinary text of the state
where it stood, and the rest is read again there.

Actions: `call` starts a call with the caught `name` (and `id`), `key` starts the argument with the
caught `key` (and `kind`), `end_value` and `end_call` complete them, `cut_call` gives a call up.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

Trim = Literal["none", "newlines"]
Reads = Literal["text", "reasoning", "skip", "space", "header", "value", "reader"]
Action = Literal["call", "key", "end_value", "end_call", "cut_call"]


class Route(Struct, frozen=True, cache_hash=True):
    """Where a header leads: the first route whose `pattern` fits the whole stripped header.

    Named groups are caught: `name`, `id`, `key`, `kind`. `declared`: only for a name (or key)
    that the turn's tools declare. `calls`: struck out when the turn must not call tools.
    `escaped`: what is caught stands in an attribute, which escapes `&` and quotes.
    """

    pattern: str
    to: str
    do: tuple[Action, ...] = ()
    declared: bool = False
    calls: bool = False
    escaped: bool = False


class Go(Struct, frozen=True, cache_hash=True):
    """Where a marker leads, and what is done on the way.

    `first`: only where the text of this block is still blank. `keep`: the marker is read again in
    the next state. `calls`: leads to a call; struck out when the turn must not call tools.
    `draft`: what follows is a call only if the output ends right after it, else text of this state.
    """

    to: str = ""
    do: tuple[Action, ...] = ()
    routes: tuple[Route, ...] = ()
    first: bool = False
    keep: bool = False
    calls: bool = False
    draft: bool = False


On = tuple[tuple[str, Go], ...]


class State(Struct, frozen=True, cache_hash=True):
    """One state.

    `otherwise`: where text leads that does not fit (space, header, reader). `barred`: characters
    that no header holds. `done`: actions when a reader has finished, before it goes `then`;
    `lost`: where a body leads that turned out to be no call; it is shown if that state is text.
    `ends`: markers that end a reader's body even inside a string, when they begin a line there: a
    raw line break is illegal in a JSON string, so it was never closed.
    `inside`: control tokens that a header holds or a reader knows; others that mark nothing are
    dropped. `at_end`: actions when the output ends here. `trim`: what the template writes around a
    value.
    """

    reads: Reads
    on: On = ()
    otherwise: str = "text"
    tentative: bool = False
    barred: str = ""
    limit: int = 256
    reader: str = ""
    then: str = "text"
    lost: str = "text"
    ends: tuple[str, ...] = ()
    inside: tuple[str, ...] = ()
    done: tuple[Action, ...] = ()
    at_end: tuple[Action, ...] = ()
    trim: Trim = "none"


States = tuple[tuple[str, State], ...]


class Reasoning(Struct, frozen=True, cache_hash=True):
    """How a family spells reasoning.

    `ended_by_calls`: a call marker ends reasoning at once. Otherwise a call inside reasoning is a
    draft: it becomes a call only if the output ends right after it. `first`: reasoning opens only
    where the text is still blank. `aside`: marks around visible text, which are dropped.
    `unknown`: where an output begins whose prompt is not known (an empty tail).
    `spelling`: what is written before and after a thought; `text`: around visible text; `last`:
    at the end of the message.
    """

    openers: tuple[str, ...]
    closers: tuple[str, ...]
    aside: tuple[str, ...] = ()
    ended_by_calls: bool = False
    first: bool = False
    unknown: Literal["text", "reasoning"] = "text"
    spelling: tuple[str, str] = ("", "")
    text: tuple[str, str] = ("", "")
    last: str = ""


class Spelling(Struct, frozen=True, cache_hash=True):
    """How calls are written, as str.format templates.

    `call` takes name, name_json, id, index, and as its body `arguments` (the JSON text) or
    `parameters`: one `parameter` (key, key_json, value, and kind, its JSON type) each; `other` is
    for values that are no strings, where the syntax tells them apart. Calls that follow one another
    stand between `opener` and `closer`, `between` them. `glue` stands between calls and anything
    else. `style` is the name under which xgrammar knows the way that `parameters` are written.
    """

    call: str
    parameter: str = ""
    other: str = ""
    opener: str = ""
    between: str = ""
    closer: str = ""
    glue: str = "\n"
    style: str = ""


class Calls(Struct, frozen=True, cache_hash=True):
    """How a family spells tool calls: markers that open them in text, and the states behind.

    `ids`: a family whose template refuses other ids than nine letters or digits says `nine`.
    """

    opens: On = ()
    states: States = ()
    spelling: Spelling | None = None
    ids: Literal["any", "nine"] = "any"


class Grammar(Struct, frozen=True, cache_hash=True):
    """A whole table. `special`: strings that are one control token in the family.

    `tails`: ends of a prompt (whitespace aside) and the state that the output then begins in;
    `start` is where it begins when nothing is known of the prompt.
    `whole`: reasoning and calls are one syntax that cannot be taken apart. `text`: what is written
    before and after visible text, `last` at the end of the message.
    """

    states: States
    special: tuple[str, ...] = ()
    tails: tuple[tuple[str, str], ...] = ()
    start: str = "text"
    whole: bool = False
    text: tuple[str, str] = ("", "")
    last: str = ""
    reasoning: Reasoning | None = None
    calls: Calls | None = None


def combine(
    reasoning: Reasoning | None, calls: Calls | None, *, special: tuple[str, ...] = ()
) -> Grammar:
    """One table of a way to reason and a way to call; either may be absent."""
    opens = tuple((marker, replace(go, calls=True)) for marker, go in calls.opens) if calls else ()
    text: On = opens
    states: States = ()
    tails: tuple[tuple[str, str], ...] = ()
    if reasoning:
        first = reasoning.first
        enter = tuple((marker, Go("reasoning", first=first)) for marker in reasoning.openers)
        leave = tuple((marker, Go("text")) for marker in reasoning.closers)
        # A tag that is out of place is no text; a phrase is, but where text still is to come.
        again = tuple((marker, Go("reasoning", first=first)) for marker in reasoning.openers)
        orphans = tuple((marker, Go("text", first=first)) for marker in reasoning.closers)
        draft = not reasoning.ended_by_calls
        inner = tuple((marker, replace(go, draft=draft)) for marker, go in opens if not go.first)
        aside = tuple((marker, Go("text")) for marker in reasoning.aside)
        text = (*enter, *aside, *orphans, *opens)
        states = (("reasoning", State("reasoning", on=(*leave, *again, *inner))),)
        tails = tuple(
            (marker.rstrip(), state)
            for state, markers in (
                ("reasoning", reasoning.openers),
                ("text", (*reasoning.closers, *reasoning.aside)),
            )
            for marker in markers
        )
    return Grammar(
        states=(("text", State("text", on=text)), *states, *(calls.states if calls else ())),
        special=special,
        tails=tails,
        start=reasoning.unknown if reasoning else "text",
        text=reasoning.text if reasoning else ("", ""),
        last=reasoning.last if reasoning else "",
        reasoning=reasoning,
        calls=calls,
    )

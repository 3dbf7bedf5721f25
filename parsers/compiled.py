"""Grammars made ready to run: markers as lexicons, names of states as the states themselves.

Compiled once per (grammar, transport, whether tools may be called) and shared by all turns.
"""

from __future__ import annotations

import re
from functools import lru_cache

from parsers.calls import CallDesk
from parsers.grammar import Action, Go, Grammar, Route, State, combine
from parsers.lexicon import Lexicon
from parsers.specials import Specials


class Way:
    """A `Go` whose target is a node."""

    __slots__ = ("do", "draft", "first", "keep", "node", "routes")

    def __init__(self, go: Go) -> None:
        self.do = go.do
        self.first = go.first
        self.keep = go.keep
        self.draft = go.draft
        self.routes: tuple[tuple[re.Pattern[str], Route, Node], ...] = ()
        self.node: Node

    def route(self, header: str, desk: CallDesk) -> tuple[Node, tuple[Action, ...]] | None:
        """Where the header leads, its groups caught by the desk; None when no route fits."""
        header = header.strip()
        for pattern, route, node in self.routes:
            found = pattern.fullmatch(header)
            if found is None:
                continue
            caught = found.groupdict("")
            if route.escaped:
                caught = {key: _unescaped(value) for key, value in caught.items()}
            if desk.catch(caught, declared=route.declared):
                return node, route.do
        return None


class Node:
    """A `State` whose markers are compiled."""

    __slots__ = (
        "barred",
        "closers",
        "ends",
        "lexicon",
        "lost",
        "name",
        "otherwise",
        "reads",
        "state",
        "tentative",
        "then",
        "ways",
    )

    def __init__(self, name: str, state: State) -> None:
        self.name = name
        self.state = state
        self.reads = state.reads
        self.tentative = state.tentative
        self.barred = re.compile("[" + re.escape(state.barred) + "]") if state.barred else None
        self.ways: dict[str, Way] = {}
        self.lexicon: Lexicon
        self.closers: Lexicon
        self.ends: tuple[str, ...]
        self.lost: Node
        self.otherwise: Node
        self.then: Node


class Table:
    """A grammar ready to run. `draft` is the table that reads calls inside reasoning."""

    def __init__(self, grammar: Grammar, *, ids: bool, calls: bool) -> None:
        self.grammar = grammar
        self.ids = ids
        self.specials = Specials(grammar.special if ids else ())
        markers = [
            marker
            for _, state in grammar.states
            for marker in (*(marker for marker, _ in state.on), *state.ends, *state.inside)
        ]
        # Control tokens that mark nothing (the end of the turn) are no part of what is said.
        self.silent = {t for t in grammar.special if not any(t in marker for marker in markers)}
        self._calls = calls
        self.nodes = {name: Node(name, state) for name, state in grammar.states}
        for node in self.nodes.values():
            self._link(node)
        self.start = self.nodes[grammar.start]
        self.text = self.nodes["text"]

    @property
    def drafts(self) -> Table:
        """The table that reads a call inside reasoning: the same calls, and no reasoning."""
        grammar = self.grammar
        return compiled(
            combine(None, grammar.calls, special=grammar.special), ids=self.ids, calls=True
        )

    def begin(self, tail: str) -> tuple[Node, bool]:
        """The state in which the output of a prompt with this tail begins; whether at a marker."""
        end = tail.rstrip()
        for suffix, name in self.grammar.tails:
            if end.endswith(suffix):
                return self.nodes[name], True
        return (self.text, False) if end else (self.start, False)

    def _link(self, node: Node) -> None:
        state, spell = node.state, self.specials.spell
        for marker, go in state.on:
            if go.calls and not self._calls:
                continue
            node.ways.setdefault(spell(marker), self._way(go))
        node.lexicon = Lexicon(node.ways)
        node.ends = tuple(spell(marker) for marker in state.ends)
        leaving = (m for m, way in node.ways.items() if way.node is not node and not way.draft)
        node.closers = Lexicon(leaving)
        node.lost = self.nodes[state.lost]
        node.otherwise = self.nodes[state.otherwise]
        node.then = self.nodes[state.then]

    def _way(self, go: Go) -> Way:
        way = Way(go)
        way.node = self.nodes[go.to or "text"]
        way.routes = tuple(
            (re.compile(route.pattern), route, self.nodes[route.to])
            for route in go.routes
            if self._calls or not route.calls
        )
        return way


def _unescaped(value: str) -> str:
    return value.replace("&quot;", '"').replace("&amp;", "&")


@lru_cache(maxsize=256)
def compiled(grammar: Grammar, *, ids: bool, calls: bool) -> Table:
    """The table of a grammar. `ids`: control tokens come marked. `calls`: tools may be called."""
    return Table(grammar, ids=ids, calls=calls)

"""Metrics: a tap that keeps Prometheus figures in a registry of its own, all named `treadle_*`.

Labels are of bounded number: a model that is not served is `other` (clients may ask for anything),
and no turn, session, replica or tool is a label.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from msgspec import Struct
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from observe.exposition import snapshot, text
from observe.seen import (
    CallEnded,
    FirstEvent,
    LaneLost,
    Names,
    RequestRefused,
    RouterState,
    ToolRunEnded,
    TurnEnded,
    TurnFailed,
    TurnReceived,
    TurnRouted,
    TurnStarted,
)
from turns.errors import ErrorKind
from turns.events import Usage

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 1800)
_GAPS = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_ROUTING = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 1)
_SHARES = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0)


PARTS = frozenset({"tools", "messages", "include", "agent_hints", "tool_choice"})
"""Parts of requests that are counted by name; all others are `field`."""


def _part(name: str) -> str:
    """Which part of a request was ignored: one of a few words, since clients choose the names."""
    first = name.split(".", 1)[0].split(":", 1)[0]
    return first if first in PARTS else "field"


class Described(Struct, frozen=True):
    """A metric as it is exposed, and what it says. docs/metrics.md is made of these."""

    name: str
    kind: str
    labels: tuple[str, ...]
    what: str


class Metrics:
    """`models` are the names of served models; `render` gives the text for `GET /metrics`.
    `described` says all that there are.
    """

    content_type = CONTENT_TYPE_LATEST

    def __init__(self, models: Collection[str] = ()) -> None:
        self._models = frozenset(models)
        self.registry = CollectorRegistry()
        self.described: list[Described] = []
        self._of_turns()
        self._of_prompts()
        self._of_the_fleet()

    def _counter(self, name: str, what: str, *labels: str) -> Counter:
        self.described.append(Described(f"treadle_{name}_total", "counter", labels, what))
        return Counter(f"treadle_{name}", what, labels, registry=self.registry)

    def _gauge(self, name: str, what: str, *labels: str) -> Gauge:
        self.described.append(Described(f"treadle_{name}", "gauge", labels, what))
        return Gauge(f"treadle_{name}", what, labels, registry=self.registry)

    def _histogram(
        self, name: str, what: str, buckets: tuple[float, ...], *labels: str
    ) -> Histogram:
        named = f"treadle_{name}"
        self.described.append(Described(named, "histogram", labels, what))
        return Histogram(named, what, labels, buckets=buckets, registry=self.registry)

    def _of_turns(self) -> None:
        turn = ("api", "model")
        self._refused = self._counter(
            "requests_refused",
            "Requests that were refused before they became turns.",
            "api",
            "kind",
        )
        self._received = self._counter("turns_received", "Turns received.", *turn)
        self._ignored = self._counter(
            "ignored", "Parts of requests that nobody acted on.", "api", "part"
        )
        self._in_flight = self._gauge("turns_in_flight", "Turns received and not over.", "api")
        self._ended = self._counter("turns_ended", "Turns that came to their end.", *turn, "stop")
        self._failed = self._counter(
            "turns_failed",
            "Turns that failed; `streamed`: after their client had seen events.",
            *turn,
            "kind",
            "streamed",
        )
        self._seconds = self._histogram(
            "turn_seconds", "From a turn's request to its end.", _SECONDS, *turn
        )
        self._first = self._histogram(
            "ttft_seconds", "From a turn's request to its first event.", _SECONDS, *turn
        )
        self._gap = self._histogram(
            "gap_seconds", "Mean time between batches of events of a turn.", _GAPS, *turn
        )
        self._longest = self._histogram(
            "longest_gap_seconds", "Longest time between batches of events of a turn.", _GAPS, *turn
        )
        self._tokens = self._counter(
            "tokens",
            "Tokens of turns, however they ended; input includes cached, output reasoning.",
            "model",
            "kind",
        )
        self._share = self._histogram(
            "cached_share", "Share of the prompt that the cache held.", _SHARES, "model"
        )
        self._breaks = self._counter(
            "prefix_break", "Prompts that do not begin as the turn before.", "model", "cause"
        )

    def _of_prompts(self) -> None:
        self._truncated = self._counter(
            "truncated", "Messages that did not fit into a prompt (`truncation: auto`).", "api"
        )
        self._preparing = self._histogram(
            "prepare_seconds", "Time to make a prompt.", _ROUTING, "model", "stage"
        )
        self._replies = self._counter(
            "replies_replayed",
            "Earlier replies in prompts: put in token for token, or written anew.",
            "model",
            "outcome",
        )
        self._memo = self._gauge(
            "tokenizer_memo",
            "Look-ups in the tokenizer's memo since the start.",
            "model",
            "outcome",
        )

    def _of_the_fleet(self) -> None:
        self._events = self._counter("events", "Events that lanes brought.")
        self._lead = self._histogram(
            "dispatch_lead_seconds",
            "How long before its turn was over a tool call could be dispatched.",
            _SECONDS,
            "model",
        )
        self._runs = self._counter(
            "tool_runs_ended", "Runs of streaming tools that are over.", "ending"
        )
        self._run_rows = self._counter("tool_run_rows", "Rows that runs of streaming tools read.")
        self._run_seconds = self._histogram(
            "tool_run_seconds", "Time of a run of a streaming tool.", _SECONDS
        )
        self._turned_away = self._counter(
            "turned_away", "Requests refused at the gate: keys, limits, sizes.", "kind"
        )
        self._calls = self._counter(
            "tool_calls", "Tool calls, ready or cut; nothing is ever repaired.", "model", "outcome"
        )
        self._routed = self._counter(
            "router_decisions", "Replicas chosen, by the rule that chose.", "why"
        )
        self._moved = self._counter("turns_moved", "Turns routed again after their first replica.")
        self._routing = self._histogram("router_seconds", "Time to choose a replica.", _ROUTING)
        self._redis_up = self._gauge("redis_up", "1 while the session store answers.")
        self._redis_up.set(1)
        self._trouble = self._counter("redis_trouble", "Store calls that failed.", "operation")
        self._away = self._counter("redis_away_seconds", "Seconds that the session store was away.")
        self._lanes = self._gauge("lanes", "Lanes (streams of events from parsers) that are open.")
        self._depth = self._gauge(
            "lane_depth", "Turns in the air, on all lanes and on the fullest.", "figure"
        )
        self._lanes_lost = self._counter("lanes_lost", "Lanes lost.")
        self._lane_turns = self._counter("lane_turns_lost", "Turns that were on a lost lane.")
        self._router = self._gauge("router_state", "The router's state.", "figure")

    def render(self, name: str = "", others: Mapping[str, bytes] | None = None) -> bytes:
        """All figures in Prometheus' text form, beside the snapshots of other processes. `name` is
        this process's; one that has none is alone.
        """
        return text({name: self.snapshot(), **(others or {})})

    def snapshot(self) -> bytes:
        """All figures, for a process that shows them beside its own."""
        return snapshot(self.registry)

    def prefix_break(self, model: str, cause: str) -> None:
        """A turn's prompt does not begin with the tokens of the turn before it."""
        self._breaks.labels(self._served(model), cause).inc()

    def decoded(self, model: str, seconds: float) -> None:
        """A request was read: the first stage of making its prompt."""
        self._preparing.labels(self._served(model), "decode").observe(seconds)

    def prepared(
        self,
        model: str,
        stages: Mapping[str, float],
        *,
        replies: tuple[int, int],
        memo: tuple[int, int],
    ) -> None:
        """A prompt was made, in so many seconds by stage. `replies` counts those that the ledger
        gave and those it might have given, `memo` hits and misses of the tokenizer so far.
        """
        name = self._served(model)
        for stage, seconds in stages.items():
            self._preparing.labels(name, stage).observe(seconds)
        given, wanted = replies
        self._replies.labels(name, "spliced").inc(given)
        self._replies.labels(name, "rendered").inc(wanted - given)
        for outcome, count in zip(("hit", "miss"), memo, strict=True):
            self._memo.labels(name, outcome).set(count)

    def truncated(self, api: str, messages: int) -> None:
        """So many messages of a turn were left out of its prompt, for it to fit."""
        self._truncated.labels(api).inc(messages)

    def request_refused(self, seen: RequestRefused) -> None:
        self._refused.labels(seen.api, seen.kind).inc()

    def turn_received(self, seen: TurnReceived) -> None:
        self._received.labels(*self._turn(seen.names)).inc()
        self._in_flight.labels(seen.names.api).inc()
        for name in seen.ignored:
            self._ignored.labels(seen.names.api, _part(name)).inc()

    def turn_routed(self, seen: TurnRouted) -> None:
        self._routed.labels(seen.why).inc()
        self._routing.observe(seen.seconds)
        if seen.attempt > 1:
            self._moved.inc()

    def turn_started(self, seen: TurnStarted) -> None:
        model = self._model(seen.names)
        if seen.input_tokens > 0:
            self._share.labels(model).observe(seen.cached_tokens / seen.input_tokens)

    def first_event(self, seen: FirstEvent) -> None:
        self._first.labels(*self._turn(seen.names)).observe(seen.seconds)

    def events(self, count: int) -> None:
        self._events.inc(count)

    def call_ended(self, seen: CallEnded) -> None:
        outcome = f"cut_{seen.cut}" if seen.cut else "ready"
        model = self._model(seen.names)
        self._calls.labels(model, outcome).inc()
        if seen.lead >= 0:
            self._lead.labels(model).observe(seen.lead)

    def turn_ended(self, seen: TurnEnded) -> None:
        turn = self._turn(seen.names)
        self._in_flight.labels(seen.names.api).dec()
        self._ended.labels(*turn, seen.stop).inc()
        self._seconds.labels(*turn).observe(seen.seconds)
        if seen.gap >= 0:
            self._gap.labels(*turn).observe(seen.gap)
            self._longest.labels(*turn).observe(seen.longest_gap)
        self._used(turn[1], seen.usage)

    def turn_failed(self, seen: TurnFailed) -> None:
        self._in_flight.labels(seen.names.api).dec()
        streamed = "yes" if seen.streamed else "no"
        turn = self._turn(seen.names)
        self._failed.labels(*turn, seen.kind, streamed).inc()
        self._used(turn[1], seen.usage)

    def redis_trouble(self, operation: str, error: str, at: float, *, away: bool) -> None:
        if away:
            self._redis_up.set(0)
        self._trouble.labels(operation).inc()

    def redis_recovered(self, seconds: float, at: float) -> None:
        self._redis_up.set(1)
        self._away.inc(seconds)

    def lane_opened(self, lane: str, at: float) -> None:
        self._lanes.inc()

    def lane_lost(self, seen: LaneLost) -> None:
        self._lanes.dec()
        self._lanes_lost.inc()
        self._lane_turns.inc(seen.turns)

    def router_state(self, seen: RouterState) -> None:
        for figure in seen.__struct_fields__[1:]:
            self._router.labels(figure).set(getattr(seen, figure))

    def tool_run_ended(self, seen: ToolRunEnded) -> None:
        ending = seen.ending if seen.ending.isidentifier() else "other"
        self._runs.labels(ending).inc()
        self._run_rows.inc(max(0, seen.rows))
        self._run_seconds.observe(seen.seconds)

    def turned_away(self, kind: ErrorKind) -> None:
        """The gate refused a request."""
        self._turned_away.labels(kind).inc()

    def lane_depths(self, turns: Collection[int]) -> None:
        """How many turns are in the air on each lane, now."""
        self._depth.labels("all").set(sum(turns))
        self._depth.labels("fullest").set(max(turns, default=0))

    def _model(self, names: Names) -> str:
        return self._served(names.model)

    def _used(self, model: str, usage: Usage) -> None:
        for kind in usage.__struct_fields__:
            self._tokens.labels(model, kind).inc(getattr(usage, kind))

    def _served(self, model: str) -> str:
        return model if model in self._models else "other"

    def _turn(self, names: Names) -> tuple[str, str]:
        return names.api, self._model(names)

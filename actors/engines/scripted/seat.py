"""A seat: one turn inside the scheduler, from the queue to its end."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

from actors.engines.scripted.script import Fault, Pace, Script
from turns.frames import Finish, Frame

Place = Literal["waiting", "prefilling", "decoding", "gone"]


class Work(Struct, frozen=True):
    """A turn for the scheduler: checked token ids, and what it will say.

    `resumed` of the prompt's last tokens were said by this turn elsewhere: the script's first
    tokens, which are not said again. `limit` is the most tokens that it may say from here. `extras`
    has, block by block, what the prompt depends on besides tokens.
    """

    turn: str
    prompt: list[int]
    script: Script
    limit: int
    priority: int = 0
    salt: str = ""
    resumed: int = 0
    logprobs: int | None = None
    extras: list[str] = field(default_factory=list)


class Seat:
    """Mutable state; only the scheduler writes it.

    `tokens` is prompt and script in one list, `pos` the next index to say, `end` the index to stop
    at. `computed` counts the tokens whose KV is there (on the fast path it is brought up to date
    when a block fills): the last token's is computed when the next one is drawn. `chain` names the
    whole blocks, `held` of which are resident; `private` blocks are taken and not full yet; `room`
    is how many more tokens fit into both.
    """

    __slots__ = (
        "cached",
        "chain",
        "computed",
        "cuts",
        "due",
        "end",
        "extras",
        "fault",
        "finish",
        "fresh",
        "held",
        "logprobs",
        "order",
        "pace",
        "place",
        "pos",
        "private",
        "reported",
        "room",
        "salt",
        "special",
        "tokens",
        "total",
        "trailing",
        "turn",
    )

    def __init__(self, work: Work, *, rank: int, now: float) -> None:
        script = work.script
        said = script.ids[work.resumed :]
        whole = len(said) <= work.limit
        self.turn = work.turn
        self.order = (work.priority, rank)
        self.salt = work.salt
        self.extras = work.extras
        self.place: Place = "waiting"
        self.tokens: list[int] = [*work.prompt, *said[: work.limit]]
        self.pos = len(work.prompt)
        self.end = len(self.tokens)
        # What must be computed before the next token can be said: more after a preemption.
        self.total = self.pos
        self.finish: Finish = script.finish if whole else "length"
        self.fault: Fault | None = script.fault if whole else None
        # An error comes alone, after what was said: so does an exception of a real engine.
        self.trailing = self.fault is not None and self.fault.kind == "fail"
        self.cuts = self._cuts(script, work, whole=whole)
        self.pace: Pace | None = script.pace
        self.due = 0.0 if script.pace is None else now + script.pace.first_s
        # What is not one token a step until a plain end takes the slow path of the scheduler.
        self.logprobs = work.logprobs
        self.special = self.cuts is not None or bool(self.pace or self.fault)
        self.special |= self.logprobs is not None
        self.cached = -1
        self.reported = script.cached
        self.fresh = True
        self.chain: list[int] = []
        self.held = 0
        self.private = 0
        self.computed = 0
        self.room = 0

    def first_frame(self, ids: list[int]) -> Frame:
        """A frame that also tells what the cache held, as the first one of a turn must."""
        self.fresh = False
        cached = self.cached if self.reported is None else self.reported
        return Frame(self.turn, ids, max(cached, 0))

    def drawn(self, ids: list[int]) -> list[list[tuple[int, float]]] | None:
        """Made-up logarithms of the tokens, where they are wanted: the same for the same token."""
        if self.logprobs is None:
            return None
        likely = [(one, -(one % 89) / 100) for one in ids]
        others = [[(max(one - n, 0), log - n) for n in range(self.logprobs)] for one, log in likely]
        return [[own, *other] for own, other in zip(likely, others, strict=True)]

    def _cuts(self, script: Script, work: Work, *, whole: bool) -> list[int] | None:
        """Where each step ends, as indexes into `tokens`, the next one last."""
        if script.cuts is None:
            return None
        shift = self.pos - work.resumed
        cuts = [cut + shift for cut in script.cuts if cut > work.resumed or not work.resumed]
        if not whole:
            cuts = [*(cut for cut in cuts if cut < self.end), self.end]
        cuts.reverse()
        return cuts

"""One model as an ingress serves it: prompts, the choice of a replica, the lease.

The router actor decides; where it does not answer in time (`actors.router_asking`) the ingress
decides by hashing (`actors.hashed_choice`), so a lost router degrades and never blocks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from msgspec import Struct
from msgspec.structs import replace

from actors.fleet import Fleet
from actors.flights import LeaseCall
from actors.hashed_choice import HashedChoice
from actors.messages import ReplicaCard
from actors.router_asking import RouterAsking, RouterClient
from actors.serving import ModelFolder, ModelSpec
from parsers.constraints import constraint
from prompts.prompter import Prompt
from protocols.catalog import Profile
from protocols.models import ModelCard
from router.blocks import chain, extras_of
from router.decision import Ask, Choice, Refusal
from turns.errors import (
    ContextTooLongError,
    InvalidRequestError,
    OverloadedError,
    UnavailableError,
)
from turns.frames import Job, ParseSpec
from turns.turn import Turn

BUSY = "all engines are busy; try again"

SHUN_FOR = 3.0
"""Seconds for which no turn is sent to a replica that has lost one, while there is another."""

EARLY_FOR = 5.0
"""Seconds for which a replica is not asked for that reports before Serve says that it is here."""

OFFERS = 3
"""Replicas of the router's choice that a turn may decline before its ingress chooses by itself."""


class ChoiceTaken(Struct, frozen=True):
    """The replica of a turn, and its reservation: the router's, or the ingress's own.

    `why` and `overlap_tokens` explain the choice; `prompt_hash` is that of the last whole block.
    `others` are the replicas that can take the turn if this one does not begin it.
    """

    replica: str
    choice: Choice
    why: str
    overlap_tokens: int = 0
    prompt_hash: int = 0
    others: tuple[str, ...] = ()


def rest(replicas: Iterable[str], chosen: str) -> tuple[str, ...]:
    """All but the chosen one."""
    return tuple(replica for replica in replicas if replica != chosen)


def block_hashes(prompt: Prompt, block_size: int, salt: str) -> list[int]:
    """The names of the prompt's whole blocks, by tokens, pictures and salt."""
    spans = [(one.digest, one.at, one.length) for one in prompt.pictures]
    extras = extras_of(spans, len(prompt.ids) // block_size, block_size)
    return chain(prompt.ids, block_size, salt, extras=extras)


class ModelService:
    """Built once per ingress and model; all its methods are called on the ingress's loop.

    `heard` says whether a replica's events would reach this ingress: whether a lane from one of its
    parsers is open.
    """

    def __init__(
        self,
        folder: ModelFolder,
        fleet: Fleet,
        router: RouterClient,
        lease: LeaseCall,
        heard: Callable[[ReplicaCard], bool] = lambda _: True,
    ) -> None:
        self.folder = folder
        self.fleet = fleet
        self.lease = lease
        self._router = router
        self._asking = RouterAsking(router, folder.spec.name)
        self._hashed = HashedChoice()
        self._placed = 0
        self._heard = heard
        self._shunned: dict[str, float] = {}
        self._early: dict[str, float] = {}  # replica -> until when it is not asked for

    @property
    def spec(self) -> ModelSpec:
        return self.folder.spec

    @property
    def context_window(self) -> int:
        """Tokens a prompt and its answer may have together: what the engines take."""
        engines = min((c.max_model_len for c in self.fleet.cards.values()), default=0)
        known = [n for n in (self.spec.context_window, engines) if n]
        return min(known) if known else 0

    @property
    def sees_images(self) -> bool:
        """Whether images can be put into a prompt, and an engine of it, if one is up, sees them."""
        cards = self.fleet.cards.values()
        seen = not cards or any(card.sees_images for card in cards)
        return seen and self.folder.prompter.sight is not None

    @property
    def up(self) -> bool:
        """Whether a turn can be served now."""
        return any(self._heard(card) for card in self.fleet.cards.values())

    def card(self, name: str, profile: Profile | None = None) -> ModelCard:
        """The model as clients are shown it under a name; `profile` where it is not its own."""
        spec = self.spec
        return ModelCard(
            id=name,
            display_name=spec.display_name or spec.name,
            context_window=self.context_window or None,
            max_output=spec.max_output,
            created=self.folder.created,
            profile=profile or spec.profile,
            takes=("text", "image") if self.sees_images else ("text",),
        )

    def admit(self, turn: Turn, prompt: Prompt) -> None:
        """ContextTooLongError where there is no room for an answer to the prompt, and
        InvalidRequestError for images that no engine of the model would see.
        """
        if prompt.pictures and not self.sees_images:
            msg = "the engine of this model is given text alone and sees no images; remove them"
            raise InvalidRequestError(msg, param="messages")
        if not self.admits(prompt):
            raise ContextTooLongError(len(prompt.ids), self.context_window)

    def admits(self, prompt: Prompt) -> bool:
        window = self.context_window
        return not window or len(prompt.ids) < window

    async def choose(
        self, turn: Turn, prompt: Prompt, *, lost: str = "", tenant: str = "", pinned: bool = False
    ) -> ChoiceTaken:
        """The replica for this turn, reserved. Raises OverloadedError when the fleet is full.

        `lost` names the replica that has just lost it, which nobody is sent to for a while.
        Tenants wait in turn where there is a queue; a `pinned` prefix is kept warm where it is.
        """
        if lost:
            self._shunned[lost] = asyncio.get_running_loop().time() + SHUN_FOR
        block = next(iter(self._usable(prompt).values())).block_size
        hashes = block_hashes(prompt, block, turn.salt)
        last = hashes[-1] if hashes else 0
        ask = Ask(
            turn=turn.id,
            hashes=hashes,
            prompt_tokens=len(prompt.ids),
            priority=turn.hints.priority,
            tier=turn.hints.tier,
            osl=turn.hints.osl,
            session=turn.session,
            tenant=tenant,
            latency=turn.hints.latency_sensitivity,
            pinned=pinned,
        )
        answer = await self._offered(ask, prompt)
        usable = self._usable(prompt)
        choice = answer or self._by_itself(ask, usable)
        self._hashed.began(choice.replica)
        shared, others = choice.overlap_blocks * block, rest(usable, choice.replica)
        return ChoiceTaken(choice.replica, choice, choice.why, shared, last, others)

    def _usable(self, prompt: Prompt) -> dict[str, ReplicaCard]:
        """The replicas that could take the turn now; UnavailableError where none is up."""
        cards = self.fleet.cards
        if not cards:
            raise UnavailableError("no replica of this model is up yet; try again", retry_after=5)
        # Where no lane is open, at the very start, one that is about to be will do.
        heard = {r: card for r, card in cards.items() if self._heard(card)} or cards
        usable = self._unshunned(heard) if self._shunned else heard
        if prompt.pictures:
            usable = {r: card for r, card in usable.items() if card.sees_images} or usable
        return usable

    async def _offered(self, ask: Ask, prompt: Prompt) -> Choice | None:
        """The router's choice; None where it does not answer, or offers nobody who can take it.

        Raises OverloadedError. The router hears of a replica from itself, this ingress from Serve:
        either may be the first, and much may change while a turn waits for a place.
        """
        declined: set[str] = set()
        for _ in range(OFFERS):
            usable = self._usable(prompt)
            unable = {r for r in self.fleet.cards if r not in usable} | self._not_yet() | declined
            answer = await self._asking.answer(replace(ask, exclude=tuple(sorted(unable))))
            if isinstance(answer, Refusal):
                raise OverloadedError(BUSY, retry_after=answer.retry_after)
            there = bool(self.fleet.cards)  # all may have gone while the turn waited
            if answer is None or (there and answer.replica in self._usable(prompt)):
                return answer
            self._router.release(self.spec.name, answer)
            declined.add(answer.replica)
            if answer.replica in self.fleet.departed:  # a new router does not know who drains
                self._router.left(self.spec.name, [answer.replica])
            elif answer.replica not in self.fleet.cards:
                self._early[answer.replica] = asyncio.get_running_loop().time() + EARLY_FOR
        return None

    def _not_yet(self) -> set[str]:
        """Those that were early when they were offered, and are not here by now."""
        now, cards = asyncio.get_running_loop().time(), self.fleet.cards
        self._early = {r: end for r, end in self._early.items() if end > now and r not in cards}
        return set(self._early)

    def _by_itself(self, ask: Ask, usable: dict[str, ReplicaCard]) -> Choice:
        """A replica by hash, of which the router is told: else it would give the place away again.

        Raises OverloadedError when this ingress alone has filled all of them.
        """
        hashes = ask.hashes
        key = str(hashes[min(len(hashes), 8) - 1]) if hashes else ask.session or ask.turn
        replica = self._hashed.choose(key, usable)
        if replica is None:
            raise OverloadedError(BUSY)
        self._placed += 1
        choice = Choice(replica, 0, "hashed", f"{ask.turn}@{self._placed}")
        self._router.placed(self.spec.name, ask, choice)
        return choice

    def _unshunned(self, cards: dict[str, ReplicaCard]) -> dict[str, ReplicaCard]:
        """Those that have lost no turn of late; all of them where there is no other."""
        now = asyncio.get_running_loop().time()
        self._shunned = {r: until for r, until in self._shunned.items() if until > now}
        return {r: card for r, card in cards.items() if r not in self._shunned} or cards

    def began(self, taken: ChoiceTaken, cached: int) -> None:
        self._router.began(self.spec.name, taken.choice, cached)

    def release(self, taken: ChoiceTaken) -> None:
        """The turn is over. Called exactly once."""
        self._hashed.ended(taken.replica)
        self._router.release(self.spec.name, taken.choice)

    def job(self, turn: Turn, prompt: Prompt) -> Job:
        """All that the engine and the parser need of the turn."""
        conversation = any(c.reads_conversation for c in self.fleet.cards.values())
        return Job(
            turn=turn.id,
            prompt=prompt.ids,
            sampling=turn.sampling,
            spec=ParseSpec(
                family=self.folder.family.name,
                tail=prompt.tail,
                tools=turn.tools,
                stop=turn.sampling.stop,
                tool_choice=turn.tool_choice,
                output=turn.output,
            ),
            stop_ids=prompt.stop_ids,
            priority=-(turn.hints.tier << 32) - turn.hints.priority,  # of tiers first
            salt=turn.salt,
            conversation=turn if conversation else None,
            thinking_budget=prompt.thinking_budget,
            constraint=constraint(
                self.folder.grammar, turn.tools, turn.tool_choice, turn.output, tail=prompt.tail
            ),
            pictures=prompt.pictures,
        )

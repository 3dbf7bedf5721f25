"""The names under which models are served: their own, aliases, patterns; and what each is shown as.

An alias answers with its model, and harnesses treat it as its profile says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from actors.model_service import ModelService
from protocols import models as model_lists
from protocols.catalog import Alias, Profile, resolve
from protocols.models import ModelCard
from turns.errors import UnknownModelError

_WILD = frozenset("*?[")


class ModelNames:
    """One per ingress. `profiles` by the names that aliases call them by."""

    def __init__(
        self,
        models: Sequence[ModelService],
        aliases: Sequence[Alias] = (),
        profiles: Mapping[str, Profile] | None = None,
    ) -> None:
        self._models = {model.spec.name: model for model in models}
        own = [Alias(name, m.spec.name) for m in models for name in m.spec.aliases]
        self._aliases = [*own, *aliases]
        self._profiles = profiles or {}
        self._etag: tuple[tuple[int, ...], str] | None = None

    def model(self, name: str) -> ModelService:
        """The model that answers to the name. Raises UnknownModelError naming those there are."""
        return self._models[self._find(name).model]

    def any(self, name: str) -> ModelService:
        """The same where a request may leave the name out: the first model is meant."""
        return self.model(name) if name else next(iter(self._models.values()))

    def cards(self) -> list[ModelCard]:
        """What `GET /v1/models` lists: every name but patterns."""
        listed = [alias.name for alias in self._aliases if not _WILD & set(alias.name)]
        return [self.card(name) for name in dict.fromkeys([*self._models, *listed])]

    def card(self, name: str) -> ModelCard:
        """One name as clients are shown it. Raises UnknownModelError."""
        alias = self._find(name)
        return self._models[alias.model].card(name, self._profiles.get(alias.profile))

    def etag(self) -> str:
        """Tells whether the catalogue of Codex changed; the same on every ingress."""
        windows = tuple(model.context_window for model in self._models.values())
        if self._etag is None or self._etag[0] != windows:
            cards = [replace(card, created=0) for card in self.cards()]
            body = model_lists.listing(cards, {}, {"client_version": "any"})
            self._etag = windows, model_lists.etag(body)
        return self._etag[1]

    def _find(self, name: str) -> Alias:
        alias = resolve(name, self._models, self._aliases)
        if alias is None:
            raise self._unknown(name)
        return alias

    def _unknown(self, name: str) -> UnknownModelError:
        return model_lists.unknown(name[:200], self.cards())

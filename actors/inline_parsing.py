"""The receiver of an ingress that parses its own turns: frames in, events to the conductor."""

from __future__ import annotations

from actors.conductor import Conductor
from actors.lanes import Order
from actors.messages import Step
from actors.model_service import ModelService
from actors.parsing import Parsing

LANE = "inline"


class InlineParsing:
    """One Parsing per model; a turn's opening says which one is its own."""

    def __init__(self, conductor: Conductor, models: list[ModelService]) -> None:
        self._conductor = conductor
        self._order = Order()
        self._parsings = {m.spec.name: Parsing(*m.folder.parser_parts()) for m in models}
        conductor.left = self._left

    def take(self, step: Step, model: str) -> None:
        for due in self._order.take(step):
            for batches in self._parsings[model].take(due).values():
                self._conductor.deliver(batches, LANE)

    def _left(self, leg: str) -> None:
        for parsing in self._parsings.values():
            parsing.leave(leg)

"""From the rule that holds to the blocks of a reply: placeholders filled, tools chosen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import UNSET, Struct

from actors.engines.scripted import calls
from actors.engines.scripted.placeholders import Values, fill, fill_deep, values_of
from actors.engines.scripted.scenario import Call, Delta, Item, Lorem, Number, Rule, Scenario
from actors.engines.scripted.scene import Scene
from actors.engines.scripted.schema import smallest
from turns.blocks import Reasoning, Text, ToolCall
from turns.turn import Tool

REFUSAL = "I can't help with that."


class Filler(Struct, frozen=True):
    """Words that come to `tokens` tokens; only a tokenizer can say how many words that is."""

    tokens: int
    reasoning: bool = False


Said = Text | Reasoning | ToolCall
Part = Said | Filler


class Plan(Struct, frozen=True):
    """What to say: parts to be written in the family's syntax, or what is model output already.

    That is `raw`, `pieces` cut by hand, or an `endless` text.
    """

    rule: Rule
    parts: tuple[Part, ...] = ()
    raw: str | None = None
    pieces: tuple[Delta, ...] | None = None
    endless: str | None = None


def plan(scenario: Scenario, scene: Scene) -> Plan:
    """The reply of a scenario in a scene. ValueError: a placeholder is no number where it must."""
    rule, caught = scenario.pick(scene)
    return by_rule(rule, scene, caught)


def by_rule(rule: Rule, scene: Scene, caught: dict[str, str]) -> Plan:
    first = rule.reply[0] if rule.reply else None
    if first is not None and (first.raw is not None or first.endless is not None):
        return Plan(rule, raw=first.raw, endless=first.endless)
    if first is not None and first.deltas is not None:
        pieces = (Delta(one) if isinstance(one, str) else one for one in first.deltas)
        return Plan(rule, pieces=tuple(pieces))
    flat = _flat(rule.reply, values_of(scene, caught))
    return Plan(rule, tuple(part for item, values in flat for part in _part(item, scene, values)))


def _flat(items: list[Item], values: dict[str, str | int]) -> Iterator[tuple[Item, Values]]:
    for item in items:
        if item.repeat is None:
            yield item, values
            continue
        for n in range(1, _number(item.repeat.times, values) + 1):
            yield from _flat(item.repeat.reply, {**values, "n": n})


def _part(item: Item, scene: Scene, values: Values) -> Iterator[Part]:
    if item.think is not None:
        yield Reasoning(fill(item.think, values))
    elif item.text is not None:
        yield Text(fill(item.text, values))
    elif item.lorem is not None:
        lorem = item.lorem if isinstance(item.lorem, Lorem) else Lorem(item.lorem)
        yield Filler(_number(lorem.tokens, values), reasoning=lorem.kind == "think")
    elif item.json is not UNSET:
        yield Text(_json(item.json, scene, values))
    elif item.refuse:
        yield Text(REFUSAL if item.refuse is True else fill(str(item.refuse), values))
    elif item.call is not None:
        yield from _call(item.call if isinstance(item.call, Call) else Call(), scene, values)


def _call(call: Call, scene: Scene, values: Values) -> Iterator[ToolCall]:
    name = fill(call.tool, values)
    tool = calls.choose(scene) if name == "auto" else _named(name, scene)
    if tool is None:  # `auto` where nothing can be called says nothing
        return
    if call.input is not None:
        text = fill(call.input, values)
    elif call.arguments == "auto":
        text = calls.arguments(tool, scene)
    elif isinstance(call.arguments, str):
        text = fill(call.arguments, values)
    else:
        text = _encoded(fill_deep(call.arguments, values))
    yield ToolCall("", tool.name, text, tool.kind, tool.namespace)


def _named(name: str, scene: Scene) -> Tool:
    return next((tool for tool in scene.tools if tool.name == name), Tool(name))


def _json(value: Any, scene: Scene, values: Values) -> str:
    if value != "auto":
        return _encoded(fill_deep(value, values))
    return _encoded(
        smallest((scene.request.output.schema if scene.request else None) or {"type": "object"})
    )


def _encoded(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _number(value: Number, values: Values) -> int:
    return value if isinstance(value, int) else int(fill(value, values))

"""A scenario: rules from a YAML file, the first one that holds decides the reply.

Unknown keys, wrong types, bad expressions and unknown placeholders are errors with their place in
the file. `clusters/scenarios/default.yaml` documents the format by example.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import msgspec
import yaml
from msgspec import UNSET, Struct, UnsetType

from actors.engines.scripted.placeholders import KNOWN, names_in
from actors.engines.scripted.scene import Scene
from actors.engines.scripted.script import Fault
from actors.engines.scripted.when import When, holds

DEFAULT = Path(__file__).parents[3] / "clusters" / "scenarios" / "default.yaml"
ALONE = ("raw", "deltas", "endless")
Number = int | str
"""A number, or a placeholder that will be one: "{count}"."""


class Call(Struct, frozen=True, forbid_unknown_fields=True):
    """A tool call. `tool: auto` picks one, `arguments: auto` makes them from its schema.

    `input` is the free text of a custom tool. A name that no tool has is called all the same.
    """

    tool: str = "auto"
    arguments: dict[str, Any] | str = "auto"
    input: str | None = None


class Lorem(Struct, frozen=True, forbid_unknown_fields=True, rename={"kind": "as"}):
    """Plain words: `tokens` of them by the model's tokenizer, as text or as thinking."""

    tokens: Number
    kind: Literal["text", "think"] = "text"


class Delta(Struct, frozen=True, forbid_unknown_fields=True):
    """One step's output, cut by hand: text that is encoded alone, or token ids as they are."""

    text: str = ""
    ids: list[int] | None = None


class Repeat(Struct, frozen=True, forbid_unknown_fields=True):
    """`reply` again and again; `{n}` counts from 1."""

    times: Number
    reply: list[Item]


class Item(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One piece of a reply: exactly one of these keys.

    `json` is text that holds a JSON value (auto: the smallest that the requested schema admits).
    `raw` is model output word for word, markers included, `deltas` the same cut by hand, `endless`
    the same again and again until something stops it: each of these stands alone, without
    placeholders.
    """

    think: str | None = None
    text: str | None = None
    call: Call | Literal["auto"] | None = None
    repeat: Repeat | None = None
    lorem: Lorem | Number | None = None
    json: Any | UnsetType = UNSET
    refuse: bool | str | None = None
    raw: str | None = None
    deltas: list[Delta | str] | None = None
    endless: str | None = None

    def __post_init__(self) -> None:
        if len(self.given()) != 1:
            raise ValueError(
                f"a piece of a reply has exactly one key, got {self.given() or 'none'}"
            )

    def given(self) -> list[str]:
        return [name for name in self.__struct_fields__ if getattr(self, name) not in (None, UNSET)]


class Tokens(Struct, frozen=True, forbid_unknown_fields=True):
    """A pace of its own: milliseconds between steps and before the first, tokens a step."""

    step_ms: float = 0.0
    first_after_ms: float = 0.0
    per_step: int = 1


class Crash(Struct, frozen=True, forbid_unknown_fields=True):
    """`exit`: the process dies at once. `raise`: the engine dies inside a process that lives."""

    tokens: int
    how: Literal["exit", "raise"] = "exit"


class Fail(Struct, frozen=True, forbid_unknown_fields=True):
    tokens: int
    message: str = "the scenario asked for a failure"


class Hang(Struct, frozen=True, forbid_unknown_fields=True):
    """`turn`: only this turn goes silent. `engine`: no turn takes another step."""

    tokens: int
    scope: Literal["turn", "engine"] = "turn"


class Rule(Struct, frozen=True, forbid_unknown_fields=True):
    """When it holds, and what it says. Faults come after N tokens (N deltas, where cut by hand),
    at the latest when the reply is over. `stop_token: false` leaves out the end-of-turn token;
    `finish: length` too, and says that the length ended it. `cached_tokens` is reported as it is.
    """

    reply: list[Item]
    name: str = ""
    when: When = When()
    tokens: Tokens = Tokens()
    finish: Literal["stop", "length"] = "stop"
    stop_token: bool = True
    crash_after: int | Crash | None = None
    fail_after: int | Fail | None = None
    hang_after: int | Hang | None = None
    cached_tokens: int | None = None

    def fault(self) -> tuple[Fault, int] | None:
        """What goes wrong, and after how many tokens."""
        if (crash := self.crash_after) is not None:
            crash = crash if isinstance(crash, Crash) else Crash(crash)
            return Fault(crash.how), crash.tokens
        if (fail := self.fail_after) is not None:
            fail = fail if isinstance(fail, Fail) else Fail(fail)
            return Fault("fail", fail.message), fail.tokens
        if (hang := self.hang_after) is not None:
            hang = hang if isinstance(hang, Hang) else Hang(hang)
            return Fault("stall" if hang.scope == "engine" else "hang"), hang.tokens
        return None

    def __post_init__(self) -> None:
        faults = [self.crash_after, self.fail_after, self.hang_after]
        if len(faults) - faults.count(None) > 1:
            raise ValueError("crash_after, fail_after and hang_after exclude each other")
        alone = [key for item in self.reply for key in item.given() if key in ALONE]
        if alone and len(self.reply) > 1:
            raise ValueError(f"{alone[0]} stands alone in a reply")
        unknown = {*names_in(msgspec.to_builtins(self.reply))} - KNOWN - self.when.names()
        if unknown and not alone:
            raise ValueError(
                f"unknown placeholder {{{min(unknown)}}}: known are {', '.join(sorted(KNOWN))} and "
                "the named groups of user_matches and result_matches; write {{name}} for braces"
            )


class Scenario(Struct, frozen=True, forbid_unknown_fields=True):
    """Rules in order; the last one must hold always, so that every conversation is answered."""

    rules: list[Rule]
    about: str = ""

    def __post_init__(self) -> None:
        if not self.rules or self.rules[-1].when != When():
            raise ValueError("the last rule must have no `when`: it answers what no other does")

    def pick(self, scene: Scene) -> tuple[Rule, dict[str, str]]:
        """The first rule that holds, and what its named groups caught."""
        for rule in self.rules:
            caught = holds(rule.when, scene)
            if caught is not None:
                return rule, caught
        raise AssertionError("the last rule always holds")


def read(source: Any, *, where: str = "scenario") -> Scenario:
    """A scenario from its parsed YAML. ValueError with the place of the fault."""
    try:
        return msgspec.convert(source, Scenario)
    except msgspec.ValidationError as error:
        raise ValueError(f"{where}: {error}") from None


def load(path: str | Path = DEFAULT) -> Scenario:
    """A scenario from a file. ValueError says what is wrong where; OSError if it is not there."""
    text = Path(path).read_text(encoding="utf-8")
    try:
        source = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(f"{path}: not YAML: {error}") from None
    return read(source, where=str(path))

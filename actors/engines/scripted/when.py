"""`when:` what a rule asks of a conversation. Every field that is set must hold."""

from __future__ import annotations

import re
from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import Any, Literal

import msgspec
from msgspec import Struct

from actors.engines.scripted.scene import Scene

Words = str | list[str]
Count = int | str
COUNT = re.compile(r"(?:(>=|<=)\s*)?(\d+)(?:\s*-\s*(\d+))?")


class When(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The conditions of a rule. A list of words means any of them; names are globs.

    `user_*` look at all that the user said since the last answer, `result_*` at this round's tool
    results, `system_contains` at system and developer text; contains ignores case, matches is a
    regular expression whose named groups the reply can use. `tool` is a declared tool that may be
    called, `tools` whether there is any. `step` counts tool results since the last answer, `turn`
    the answers so far: 2, ">=1", "<=3" or "1-3". `hints` compares fields of the agent hints,
    `kwargs` template arguments, `metadata` the request's metadata.
    """

    user_contains: Words | None = None
    user_matches: str | None = None
    result_contains: Words | None = None
    result_matches: str | None = None
    system_contains: Words | None = None
    tool: Words | None = None
    tools: bool | None = None
    tool_choice: Words | None = None
    step: Count | None = None
    turn: Count | None = None
    model: Words | None = None
    api: Words | None = None
    session: Words | None = None
    thinking: Literal["default", "on", "off"] | None = None
    output: Words | None = None
    hints: dict[str, Any] | None = None
    kwargs: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        for name in ("user_matches", "result_matches"):
            _compiled(name, getattr(self, name))
        for name in ("step", "turn"):
            value = getattr(self, name)
            if value is not None:
                _range(name, value)

    def names(self) -> frozenset[str]:
        """The named groups that the reply can use."""
        patterns = (self.user_matches or "", self.result_matches or "")
        return frozenset(name for one in patterns for name in re.compile(one).groupindex)


def holds(when: When, scene: Scene) -> dict[str, str] | None:
    """What the named groups caught, or None where a condition does not hold."""
    for name, check in CHECKS.items():
        wanted = getattr(when, name)
        if wanted is not None and not check(wanted, scene):
            return None
    caught: dict[str, str] = {}
    for pattern, text in ((when.user_matches, scene.asked), (when.result_matches, scene.results)):
        if pattern is None:
            continue
        found = re.search(pattern, text)
        if found is None:
            return None
        caught |= {name: value or "" for name, value in found.groupdict().items()}
    return caught


def _compiled(name: str, pattern: str | None) -> None:
    try:
        re.compile(pattern or "")
    except re.error as error:
        raise ValueError(f"{name} is not a regular expression: {error}") from None


def _range(name: str, value: Count) -> tuple[int, float]:
    if isinstance(value, int):
        return value, value
    found = COUNT.fullmatch(value.strip())
    if found is None or (found[1] and found[3]):
        raise ValueError(f'{name} is {value!r}: write 2, ">=1", "<=3" or "1-3"')
    number = int(found[2])
    if found[1] == ">=":
        return number, float("inf")
    if found[1] == "<=":
        return 0, number
    return number, int(found[3] or number)


def _within(name: str, value: Count, count: int) -> bool:
    low, high = _range(name, value)
    return low <= count <= high


def _any(words: Words, test: Callable[[str], bool]) -> bool:
    return any(test(word) for word in ([words] if isinstance(words, str) else words))


def _contains(words: Words, text: str) -> bool:
    text = text.lower()
    return _any(words, lambda word: word.lower() in text)


def _glob(words: Words, name: str) -> bool:
    return _any(words, lambda word: fnmatchcase(name, word))


def _equal(wanted: dict[str, Any], got: Any) -> bool:
    return isinstance(got, dict) and all(
        key in got and got[key] == value for key, value in wanted.items()
    )


def _of(test: Callable[[Any, Any], bool], path: str) -> Callable[[Any, Scene], bool]:
    """`test` on a field of the request; a scene without a request has none of them."""

    def check(wanted: Any, scene: Scene) -> bool:
        got: Any = scene.request
        for name in path.split("."):
            got = got.get(name) if isinstance(got, dict) else getattr(got, name, None)
        return got is not None and test(wanted, got)

    return check


CHECKS: dict[str, Callable[[Any, Scene], bool]] = {
    "user_contains": lambda wanted, scene: _contains(wanted, scene.asked),
    "result_contains": lambda wanted, scene: _contains(wanted, scene.results),
    "system_contains": lambda wanted, scene: _contains(wanted, scene.system),
    "tool": lambda wanted, scene: any(_glob(wanted, tool.name) for tool in scene.tools),
    "tools": lambda wanted, scene: wanted == bool(scene.tools),
    "tool_choice": _of(_glob, "tool_choice.mode"),
    "step": lambda wanted, scene: _within("step", wanted, scene.step),
    "turn": lambda wanted, scene: _within("turn", wanted, scene.turn),
    "model": _of(_glob, "model"),
    "api": _of(_glob, "api"),
    "session": _of(_glob, "session"),
    "thinking": _of(lambda wanted, got: wanted == got, "thinking.mode"),
    "output": _of(_glob, "output.kind"),
    "hints": _of(lambda wanted, got: _equal(wanted, msgspec.structs.asdict(got)), "hints"),
    "kwargs": _of(_equal, "template_kwargs"),
    "metadata": _of(_equal, "echo.metadata"),
}

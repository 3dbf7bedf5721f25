"""What a family is: everything that differs from one model family to the next, as data.

A family is one file beside this one that holds a `FAMILY`. It names a grammar by its name in
`parsers/grammars/`; it never names another family.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct, field


class ThinkingControls(Struct, frozen=True):
    """How the neutral thinking setting reaches the template.

    `default` is what the template does when nothing is said; `none` means that the family does
    not reason. `on` and `off` are template arguments; `effort` maps an effort word to template
    arguments; `budget_arg` names the template argument that takes a token budget, "" if none.
    `system_on` and `system_off` are words that some templates look for in the system message
    instead (`/no_think`); they go to its end on a line of their own.
    """

    default: Literal["on", "off", "none"] = "none"
    on: dict[str, Any] = field(default_factory=dict)
    off: dict[str, Any] = field(default_factory=dict)
    effort: dict[str, dict[str, Any]] = field(default_factory=dict)
    budget_arg: str = ""
    system_on: str = ""
    system_off: str = ""


class Replay(Struct, frozen=True):
    """What becomes of earlier reasoning in the next prompt.

    `always`: kept. `tool_loop`: kept from the last user message on, dropped before it.
    `never`: dropped. `agentic` are template arguments set when a reasoning family serves a turn
    with tools (e.g. `truncate_history_thinking=False`).
    """

    keep: Literal["always", "tool_loop", "never"] = "never"
    agentic: dict[str, Any] = field(default_factory=dict)


class Family(Struct, frozen=True):
    """One model family.

    `architectures` and `template_marks` (substrings of the chat template, all must be there)
    detect it from a model folder. `stop_tokens` end a turn and are no text; `special_tokens` are
    the other control tokens. `aliases` are the parser names under
    which users know it elsewhere (vLLM, SGLang, Dynamo), apart for reasoning and tools. Of a family
    that `sees_images` the scripted model does too; a real one says it in its folder.
    """

    name: str
    title: str
    grammar: str
    template_source: str
    stop_tokens: tuple[str, ...]
    special_tokens: tuple[str, ...] = ()
    architectures: tuple[str, ...] = ()
    template_marks: tuple[str, ...] = ()
    thinking: ThinkingControls = field(default_factory=ThinkingControls)
    replay: Replay = field(default_factory=Replay)
    context_window: int | None = None
    reasoning_aliases: tuple[str, ...] = ()
    tool_aliases: tuple[str, ...] = ()
    sees_images: bool = False

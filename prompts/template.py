"""The chat template: Jinja in a sandbox, as the model's authors ran it.

The environment is that of `transformers` (`apply_chat_template`): trimmed blocks, loop controls,
the `generation` tag, `tojson` without HTML escapes and with key order kept, `raise_exception`,
`strftime_now`. Templates come from the model folder or from `templates/` beside this file, and
from a request only where the operator allows it (`PromptSettings.request_templates`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, NoReturn

import jinja2
from jinja2.compiler import CodeGenerator, Frame
from jinja2.ext import Extension, loopcontrols
from jinja2.nodes import CallBlock, Getattr, Name, Node
from jinja2.parser import Parser
from jinja2.runtime import LoopContext
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace

from families.family import Family
from prompts.exact import dumps

SHIPPED = Path(__file__).parent / "templates"
_SPECIAL = (
    "bos_token",
    "eos_token",
    "unk_token",
    "sep_token",
    "pad_token",
    "cls_token",
    "mask_token",
)
_MISSING = object()
_DICT_NAMES = frozenset(dir(dict))
_SAFE: dict[type, frozenset[str]] = {
    str: frozenset(name for name in dir(str) if not name.startswith(("_", "format"))),
    LoopContext: frozenset({"index", "index0", "first", "last", "length", "previtem", "nextitem"}),
}

Clock = Callable[[], datetime]


class TemplateError(Exception):
    """The template refused the conversation, or broke on it."""


class Generation(Extension):
    """`{% generation %}` marks what a trainer would learn from; to us it is nothing."""

    tags = {"generation"}  # noqa: RUF012 -- the name and type that Jinja reads

    def parse(self, parser: Parser) -> Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return CallBlock(self.call_method("_body"), [], [], body).set_lineno(line)

    @staticmethod
    def _body(caller: Callable[[], str]) -> str:
        return caller()


class Generator(CodeGenerator):
    """Writes `message.role` as an access to a plain dict, with the sandbox's way behind it.

    It is most of what templates do, thousands of times in a long conversation.
    """

    def visit_Getattr(self, node: Getattr, frame: Frame) -> None:  # noqa: N802 -- Jinja's name
        if not isinstance(node.node, Name) or node.attr in _DICT_NAMES:
            super().visit_Getattr(node, frame)
            return
        self.write("(")
        self.visit(node.node, frame)
        self.write(f"[{node.attr!r}] if type(")
        self.visit(node.node, frame)
        self.write(f") is dict and {node.attr!r} in ")
        self.visit(node.node, frame)
        self.write(" else ")
        super().visit_Getattr(node, frame)
        self.write(")")


class Sandbox(ImmutableSandboxedEnvironment):
    """The sandbox, with a short way for what templates do most: `message.role`, `text.strip`.

    The short way gives only what the long way would: entries of plain dicts, methods of plain
    strings that format nothing, counters of loops, the template's own variables.
    """

    code_generator_class = Generator

    def getattr(self, obj: Any, attribute: str) -> Any:
        kind = type(obj)
        if kind is dict:
            if attribute not in _DICT_NAMES:
                found = obj.get(attribute, _MISSING)
                return self.undefined(obj=obj, name=attribute) if found is _MISSING else found
        elif attribute in _SAFE.get(kind, ()):
            return getattr(obj, attribute)
        elif kind is Namespace and not attribute.startswith("_"):
            found = getattr(obj, attribute, _MISSING)
            return super().getattr(obj, attribute) if found is _MISSING else found
        return super().getattr(obj, attribute)


def _raise(message: str) -> NoReturn:
    raise TemplateError(message)


def _environment(clock: Clock) -> Sandbox:
    env = Sandbox(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols])
    env.filters["tojson"] = dumps
    env.globals["raise_exception"] = _raise
    env.globals["strftime_now"] = lambda form: clock().strftime(form)
    return env


class ChatTemplate:
    """One chat template. Rendering is safe from several threads."""

    def __init__(
        self, source: str, *, tokens: Mapping[str, str] | None = None, clock: Clock = datetime.now
    ) -> None:
        """`tokens` are the model's named tokens (`bos_token` …), which templates write out."""
        self.source = source
        self._tokens = dict(tokens or {})
        self._clock = clock
        try:
            self._compiled = _environment(clock).from_string(source)
        except jinja2.TemplateSyntaxError as err:
            msg = f"the chat template does not parse, line {err.lineno}: {err.message}"
            raise ValueError(msg) from err

    def written_as(self, source: str) -> ChatTemplate:
        """Another template of the same model. Raises `ValueError` if it does not parse."""
        return ChatTemplate(source, tokens=self._tokens, clock=self._clock)

    def render(
        self,
        messages: list[dict[str, Any]],
        *,
        tools: list[dict[str, Any]] | None = None,
        generate: bool = True,
        arguments: Mapping[str, Any] | None = None,
    ) -> str:
        """The text of the conversation; with `generate`, the start of the reply behind it.

        Raises `TemplateError`. `arguments` are the template's own (`enable_thinking` …).
        """
        try:
            return self._compiled.render(
                {
                    **self._tokens,
                    **(arguments or {}),
                    "messages": messages,
                    "tools": tools or None,
                    "documents": None,
                    "add_generation_prompt": generate,
                }
            )
        except TemplateError:
            raise
        except Exception as err:  # whatever a template does wrong, it is this request that fails
            raise TemplateError(f"{type(err).__name__}: {err}") from err


class Folder:
    """What a model folder says about its templates."""

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        self.config = _json(self.path / "tokenizer_config.json")

    def sources(self) -> dict[str, str]:
        """Template sources by name: `default`, and `tool_use` or others if there are any."""
        found: dict[str, str] = {}
        for listed in (self.config.get("chat_template"), _json(self.path / "chat_template.json")):
            found |= _named(listed)
        file = self.path / "chat_template.jinja"
        if file.is_file():
            found["default"] = file.read_text(encoding="utf-8")
        for extra in sorted(self.path.glob("additional_chat_templates/*.jinja")):
            found[extra.stem] = extra.read_text(encoding="utf-8")
        return found

    def tokens(self) -> dict[str, str]:
        """The named tokens that templates write out."""
        special = _json(self.path / "special_tokens_map.json")
        named = {name: special.get(name) for name in _SPECIAL}
        named |= {name: self.config[name] for name in _SPECIAL if self.config.get(name)}
        spelled = {name: _spelling(token) for name, token in named.items()}
        return {name: token for name, token in spelled.items() if token}


def _named(listed: Any) -> dict[str, str]:
    match listed:
        case str():
            return {"default": listed}
        case list():
            return {str(item["name"]): str(item["template"]) for item in listed}
        case {"chat_template": template}:
            return _named(template)
        case dict():
            return {str(name): source for name, source in listed.items() if isinstance(source, str)}
        case _:
            return {}


def _spelling(token: Any) -> str:
    if isinstance(token, dict):
        return str(token.get("content") or "")
    return token if isinstance(token, str) else ""


def _json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    document = json.loads(path.read_text(encoding="utf-8"))
    return document if isinstance(document, dict) else {}


@lru_cache
def shipped(name: str) -> str | None:
    """The source of the template of that name that comes with treadle, if there is one."""
    path = SHIPPED / f"{name}.jinja"
    if not re.fullmatch(r"[a-z0-9_]+", name) or not path.is_file():
        return None
    return path.read_text(encoding="utf-8")


def shipped_for(family: Family) -> str | None:
    """The shipped template of a family: its own, or that of the syntax in which it calls."""
    return shipped(family.name) or shipped(family.grammar.rpartition("+")[2])

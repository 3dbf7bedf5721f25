"""What a chat template reads, known by rendering small conversations and looking.

A substring of a template's source says nothing: it may stand in a comment or a dead branch.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct

from prompts.template import ChatTemplate, TemplateError

Message = dict[str, Any]

_WORD = "Qzwprobe"
_USER: Message = {"role": "user", "content": "Qzwuser"}
_TOOL = {
    "type": "function",
    "function": {
        "name": _WORD,
        "description": "",
        "parameters": {"type": "object", "properties": {"a": {"type": "string"}}},
    },
}


class Traits(Struct, frozen=True):
    """What the template does with what it is given.

    `tools`: it shows tools. `calls`: it shows calls; `talks`: text beside calls too; `parallel`:
    several calls. `arguments`: whether calls take them as an object or as text; `raw_arguments`:
    text is taken, and written as it is. `reasoning` is the message field that it reads reasoning
    from, "" if none. `parts`: content must be a list of parts; `images`: it may be one that holds
    images. `late_system`: a system message may
    stand anywhere and is written there. `alternate`: two user messages in a row are refused.
    """

    tools: bool
    calls: bool
    talks: bool
    parallel: bool
    arguments: Literal["object", "text"]
    raw_arguments: bool
    reasoning: str
    parts: bool
    images: bool
    system: bool
    late_system: bool
    tool_role: bool
    alternate: bool


class _Prober:
    def __init__(self, template: ChatTemplate, arguments: Mapping[str, Any], parts: bool) -> None:
        self._template = template
        self._arguments = arguments
        self._parts = parts

    def text(self, *messages: Message, tools: list[dict[str, Any]] | None = None) -> str:
        """The rendering, "" where the template refuses."""
        try:
            return self._template.render(
                [self._shaped(message) for message in messages],
                tools=tools,
                arguments=self._arguments,
            )
        except TemplateError:
            return ""

    def shows(self, *messages: Message, tools: list[dict[str, Any]] | None = None) -> bool:
        return _WORD in self.text(*messages, tools=tools)

    def _shaped(self, message: Message) -> Message:
        if not self._parts:
            return message
        return message | {"content": [{"type": "text", "text": message["content"]}]}


def _call(arguments: Any, **fields: Any) -> Message:
    function = {"name": "f", "arguments": arguments}
    call = {"type": "function", "id": "call00000", "function": function}
    return {"role": "assistant", "content": "", "tool_calls": [call], **fields}


def _result(content: str) -> Message:
    return {"role": "tool", "content": content, "tool_call_id": "call00000", "name": "f"}


def read(template: ChatTemplate, arguments: Mapping[str, Any]) -> Traits:
    """Probe the template, with the arguments that switch its reasoning on."""
    word = {"role": "user", "content": _WORD}
    shown = _Prober(template, arguments, parts=False).text(word)
    # a template made for parts either breaks on text or walks it letter by letter
    parts = _WORD not in shown and _Prober(template, arguments, parts=True).shows(word)
    probe = _Prober(template, arguments, parts)
    objects = probe.shows(_USER, _call({"a": _WORD}), _result("r"))
    form: Literal["object", "text"] = "object"
    if not objects and probe.shows(_USER, _call(f'{{"a": "{_WORD}"}}'), _result("r")):
        form = "text"
    plain = _call({"a": "b"} if form == "object" else '{"a": "b"}')
    raw = probe.text(_USER, _call('{"Qzwkey":  1}'), _result("r"))
    two = plain | {"tool_calls": plain["tool_calls"] * 2}
    return Traits(
        tools=probe.shows(_USER, tools=[_TOOL]),
        calls=objects or form == "text",
        talks=probe.shows(_USER, plain | {"content": _WORD}, _result("r")),
        parallel=bool(probe.text(_USER, two, _result("r"), _result("s"))),
        arguments=form,
        raw_arguments='{"Qzwkey":  1}' in raw,
        reasoning=_reasoning_field(probe, plain),
        parts=parts,
        images=_images(template, arguments),
        system=probe.shows({"role": "system", "content": _WORD}, _USER),
        late_system=_late_system(probe),
        tool_role=probe.shows(_USER, plain, _result(_WORD)),
        alternate=not probe.text(_USER, _USER),
    )


def _images(template: ChatTemplate, arguments: Mapping[str, Any]) -> bool:
    """Whether an image beside a text leaves a mark in the prompt, and not the list as Python
    writes it.
    """
    text = {"type": "text", "text": _WORD}
    try:
        without, having = (
            template.render([{"role": "user", "content": parts}], arguments=arguments)
            for parts in ([text], [text, {"type": "image"}])
        )
    except TemplateError:
        return False
    return _WORD in having and without != having and "'type'" not in having


def _reasoning_field(probe: _Prober, plain: Message) -> str:
    for field in ("reasoning_content", "reasoning", "thinking"):
        if probe.shows(_USER, plain | {field: _WORD}, _result("r")):
            return field
    return ""


def _late_system(probe: _Prober) -> bool:
    """Whether a late system message is written in its place, and not over the first one."""
    text = probe.text(
        {"role": "system", "content": "Qzwhead"},
        _USER,
        {"role": "assistant", "content": "Qzwreply"},
        {"role": "system", "content": _WORD},
        _USER,
    )
    places = [text.find(word) for word in ("Qzwhead", "Qzwreply", _WORD)]
    return -1 not in places and places == sorted(places)

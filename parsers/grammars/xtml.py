"""Kimi K3's XTML: elements of three control tokens for thoughts, the answer and calls.

    <|open|>think<|sep|>…<|close|>think<|sep|><|open|>response<|sep|>…<|close|>response<|sep|>
    <|open|>tools<|sep|><|open|>call tool="forecast" index="1"<|sep|>
    <|open|>argument key="place" type="string"<|sep|>Oslo<|close|>argument<|sep|>
    <|close|>call<|sep|><|close|>tools<|sep|><|close|>message<|sep|>

Values carry their type and are verbatim; only attributes escape `&` and `"`.
"""

from __future__ import annotations

from parsers.grammar import Calls, Go, On, Reasoning, Route, Spelling, State, combine
from parsers.grammars.json_body import json_body

SEP = "<|sep|>"


def opened(element: str) -> str:
    return f"<|open|>{element}{SEP}"


def closed(element: str) -> str:
    return f"<|close|>{element}{SEP}"


_CALL, _ARGUMENT = "<|open|>call", "<|open|>argument"
_NAMED = r'tool="(?P<name>[^"]+)"(\s+index="[^"]*")?'
_KEYED = r'key="(?P<key>[^"]*)"(\s+type="(?P<kind>[^"]*)")?'
_END: On = ((closed("tools"), Go("tools_closed")), (closed("message"), Go("text")))
_NEXT: On = ((_CALL, Go("call")), *_END)
_INSIDE: On = (
    (_ARGUMENT, Go("argument")),
    ("<|open|>json", Go("json")),
    (closed("call"), Go("tools", do=("end_call",))),
    (_CALL, Go("call", do=("cut_call",))),
    (closed("tools"), Go("tools_closed", do=("cut_call",))),
)

XTML = Calls(
    opens=((opened("tools"), Go("tools")), (_CALL, Go("call"))),
    states=(
        ("tools", State("skip", on=_NEXT)),
        (
            "call",
            State(
                "header",
                on=(
                    (SEP, Go(routes=(Route(_NAMED, "call_body", do=("call",), escaped=True),))),
                    *_END,
                ),
                otherwise="tools",
            ),
        ),
        ("call_body", State("skip", on=_INSIDE)),
        (
            "argument",
            State(
                "header",
                on=(
                    (SEP, Go(routes=(Route(_KEYED, "value", do=("key",), escaped=True),))),
                    *_INSIDE[2:],
                ),
                otherwise="call_body",
            ),
        ),
        (
            "value",
            State(
                "value",
                on=(
                    (closed("argument"), Go("call_body", do=("end_value",))),
                    (closed("call"), Go("tools", do=("end_value", "end_call"))),
                ),
            ),
        ),
        ("json", State("header", on=((SEP, Go("json_body")),), otherwise="call_body")),
        *json_body("json_body", then="json_read", otherwise="call_body", ends=(closed("json"),)),
        (
            "json_read",
            State(
                "skip",
                on=((closed("json"), Go("json_read")), (closed("call"), Go("tools")), *_NEXT),
            ),
        ),
        (
            "tools_closed",
            State("space", on=((opened("tools"), Go("tools")), *_END), otherwise="text"),
        ),
    ),
    spelling=Spelling(
        call=f'{_CALL} tool="{{name}}" index="{{index}}"{SEP}{{parameters}}{closed("call")}',
        parameter=f'{_ARGUMENT} key="{{key}}" type="{{kind}}"{SEP}{{value}}{closed("argument")}',
        opener=opened("tools"),
        closer=closed("tools"),
        glue="",
        style="kimi_k3_xml",
    ),
)
XTML_THINK = Reasoning(
    openers=(opened("think"),),
    closers=(closed("think"), opened("response"), closed("message")),
    aside=(opened("response"), closed("response"), closed("message")),
    ended_by_calls=True,
    unknown="reasoning",
    spelling=(opened("think"), closed("think")),
    text=(opened("response"), closed("response")),
    last=closed("message"),
)

GRAMMARS = {"kimi_k3": combine(XTML_THINK, XTML)}

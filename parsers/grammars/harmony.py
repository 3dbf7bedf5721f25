"""gpt-oss's harmony: messages on channels; a message to a function is a call.

    <|channel|>analysis<|message|>…<|end|><|start|>assistant<|channel|>commentary
    to=functions.forecast <|constrain|>json<|message|>{"place": "Oslo"}<|call|>

The recipient may stand in the role or in the channel, on any channel. Commentary without one is
for the user's eyes. Header words that nobody knows are passed over; a header without its message
mark says nothing. Inside a message a channel mark counts only when a whole header follows.
"""

from __future__ import annotations

from parsers.grammar import Calls, Go, Grammar, On, Reasoning, Route, Spelling, State
from parsers.grammars.json_body import json_body

START, CHANNEL, MESSAGE = "<|start|>", "<|channel|>", "<|message|>"
END, CALL, RETURN = "<|end|>", "<|call|>", "<|return|>"
_ANY = r"[\s\S]*"
_TO = r"(?:[\s\S]*\s)?to=functions\.(?P<name>[^\s<]+)[\s\S]*"
_CHANNELS = (
    Route(_TO, "arguments", do=("call",), calls=True),
    Route(_TO, "text"),
    Route(r"(?:[\s\S]*\s)?to=(?P<name>[^\s<]+)[\s\S]*", "arguments", do=("call",), declared=True),
    Route(r"(?:[\s\S]*\s)?to=(?!assistant)[\s\S]*", "elsewhere"),
    Route(r"analysis" + _ANY, "reasoning"),
)
_HEADER = Go(routes=(*_CHANNELS, Route(_ANY, "text")))
_KNOWN = Go(routes=(*_CHANNELS, Route(r"(?:final|commentary)" + _ANY, "text")))
_ROLE = Go(routes=(Route(_TO, "called", calls=True), Route(_ANY, "channel")))
_BETWEEN = Go("between")
_ENDS: On = ((END, _BETWEEN), (CALL, _BETWEEN), (RETURN, _BETWEEN), (START, Go("role")))
_CERTAIN: On = (*_ENDS, (CHANNEL, Go("channel")))
_INSIDE: On = (*_ENDS, (CHANNEL, Go("perhaps")))
_RECIPIENT: On = ((" to=", Go("recipient", first=True, keep=True)),)
_NEVER = Go(routes=(Route(r"(?!)", "text"),))

HARMONY = Grammar(
    states=(
        ("text", State("text", on=_INSIDE)),
        ("begin", State("text", on=(*_CERTAIN, (MESSAGE, Go("text")), *_RECIPIENT))),
        ("reasoning", State("reasoning", on=tuple(on for on in _INSIDE if on[0] != CALL))),
        ("between", State("space", on=(*_CERTAIN, (MESSAGE, Go("text"))), otherwise="text")),
        ("role", State("header", on=((MESSAGE, _HEADER), *_ENDS, (CHANNEL, _ROLE)))),
        (
            "recipient",
            State("header", on=((CHANNEL, _ROLE), (MESSAGE, _HEADER)), barred="\n", tentative=True),
        ),
        (
            "channel",
            State("header", on=((MESSAGE, _HEADER), *_CERTAIN), inside=("<|constrain|>",)),
        ),
        (
            "perhaps",
            State(
                "header",
                on=((MESSAGE, _KNOWN), *((mark, _NEVER) for mark, _ in _CERTAIN)),
                barred="\n",
                tentative=True,
            ),
        ),
        ("called", State("header", on=((MESSAGE, Go("arguments", do=("call",))), *_CERTAIN))),
        *json_body("arguments", then="between", otherwise="elsewhere", ends=(END, CALL, START)),
        ("elsewhere", State("skip", on=_CERTAIN)),
    ),
    tails=(
        ("<|start|>assistant", "begin"),
        ("<|channel|>analysis<|message|>", "reasoning"),
        ("<|message|>", "text"),
    ),
    start="begin",
    whole=True,
    text=("<|channel|>final<|message|>", END),
    reasoning=Reasoning(
        openers=("<|channel|>analysis<|message|>",),
        closers=(END,),
        spelling=("<|channel|>analysis<|message|>", END + "<|start|>assistant"),
    ),
    calls=Calls(
        spelling=Spelling(
            call=f"{CHANNEL}commentary to=functions.{{name}} <|constrain|>json{MESSAGE}"
            f"{{arguments}}{CALL}",
            between="<|start|>assistant",
            glue="<|start|>assistant",
        )
    ),
)

GRAMMARS = {"gpt_oss": HARMONY}

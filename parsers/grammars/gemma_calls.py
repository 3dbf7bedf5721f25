"""Gemma's calls: `call:NAME{key:value}` with a token for quotes; thoughts in a channel.

<|tool_call>call:forecast{days:3,place:<|"|>Oslo<|"|>}<tool_call|>
"""

from __future__ import annotations

from parsers.grammar import Calls, Go, On, Reasoning, Route, Spelling, State, combine

_NAMED = r"(?:call:)?(?P<name>[^\s:{}()]+)"


def gemma(opener: str, closer: str, quote: str, *, reader: str, parens: str = "") -> Calls:
    """`reader` reads the arguments in braces, `parens` those in a slip's round brackets."""
    brackets: On = (("{", Go(routes=(Route(_NAMED, "arguments", do=("call",)),))),)
    if parens:
        brackets = (*brackets, ("(", Go(routes=(Route(_NAMED, "round", do=("call",)),))))
    again: On = ((closer, Go("call_closed")), (opener, Go("call_name")))
    states = [
        ("call_name", State("header", on=(*brackets, *again), otherwise="bad_call")),
        (
            "arguments",
            State("reader", reader=reader, then="call_read", otherwise="bad_call", inside=(quote,)),
        ),
        ("bad_call", State("skip", on=again)),
        ("call_read", State("space", on=again, otherwise="text")),
        ("call_closed", State("space", on=again, otherwise="text")),
    ]
    if parens:
        states.append(
            ("round", State("reader", reader=parens, then="call_read", otherwise="bad_call"))
        )
    return Calls(
        opens=((opener, Go("call_name")),),
        states=tuple(states),
        spelling=Spelling(call=f"{opener}call:{{name}}{{arguments}}{closer}", glue=""),
    )


GEMMA4 = gemma(
    "<|tool_call>", "<tool_call|>", '<|"|>', reader="gemma4_arguments", parens="gemma4_parens"
)
FUNCTIONGEMMA = gemma(
    "<start_function_call>",
    "<end_function_call>",
    "<escape>",
    reader="functiongemma_arguments",
)
CHANNEL = Reasoning(
    openers=("<|channel>thought\n", "<|channel>thought", "<|channel>"),
    closers=("<channel|>",),
    spelling=("<|channel>thought\n", "\n<channel|>"),
)

GRAMMARS = {"gemma4": combine(CHANNEL, GEMMA4), "functiongemma": combine(None, FUNCTIONGEMMA)}

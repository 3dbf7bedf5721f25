"""Work grows with the output and no faster: operations are counted, not seconds."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType

import pytest

from parsers.detokenizer import Piece
from parsers.json_object import JsonObject
from parsers.lexicon import Lexicon
from parsers.machine import TurnParser
from tests.parsers.outputs import TOOLS, grammar
from turns.events import Usage

XML = "<tool_call>\n<function=save_file>\n<parameter=body>\n"
JSON = '<tool_call>\n{"name": "save_file", "arguments": {"body": "'
HARD = [
    pytest.param("hermes", "", "a < b </ c <t ", "", id="look-alikes"),
    pytest.param("hermes", "", "<tool_call>", "", id="openers"),
    pytest.param("hermes", "<think>", "<tool_call>", "", id="openers-in-reasoning"),
    pytest.param("hermes", "<think>", '<tool_call>{"name": "clock"}</tool_call>', "x", id="drafts"),
    pytest.param("hermes", "", "<think>x</think>", "", id="thoughts"),
    pytest.param("hermes", "x", " \n", "y", id="blanks"),
    pytest.param("hermes", JSON, "\\\\ \\n é", '"}}\n</tool_call>', id="escapes"),
    pytest.param("hermes", JSON, "\n", '"}}\n</tool_call>', id="raw-newlines"),
    pytest.param("hermes", JSON + 'x", "b": ', "[", "", id="deep"),
    pytest.param("hermes", '<tool_call>{"arguments": {"a": "', "word ", "", id="late-name"),
    pytest.param("qwen3_coder", "", "<function=f>", "", id="bare-functions"),
    pytest.param("qwen3_coder", "", "<tool_call>\n<function=", "", id="half-calls"),
    pytest.param("qwen3_coder", XML, "</parameter>", "", id="closers"),
    pytest.param("qwen3_coder", XML, "\n<parameter=x>", "", id="parameters-in-values"),
    pytest.param("qwen3_coder", XML, "\n</function>\n", "", id="ends-in-values"),
    pytest.param("qwen3_coder", XML.replace("body", "tags") + "[", "'a', ", "", id="long-array"),
    pytest.param("qwen3_coder", XML.replace("body", "label"), "12", "", id="long-number"),
    pytest.param("qwen3_coder", XML.replace("body", "mode"), "12", "", id="long-integer"),
]


def work(run: Callable[[], None]) -> int:
    """Calls made, in Python and in C, and characters searched."""
    count = 0
    began: list[int] = []

    def note(frame: FrameType, event: str, arg: object) -> None:
        nonlocal count
        count += 1
        code = frame.f_code
        if event == "call" and code in SEARCHES:
            began.append(frame.f_locals["pos"])
        if event == "return" and code in SEARCHES:
            seen = frame.f_locals
            end = arg[1] if isinstance(arg, tuple) else arg
            count += (end if end >= 0 else len(seen["text"])) - began.pop()

    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    return count


SEARCHES = {Lexicon.find.__code__, JsonObject.feed.__code__}


def reading(name: str, output: str, step: int) -> Callable[[], None]:
    def run() -> None:
        parser = TurnParser(grammar(name), mint=lambda i, _: f"c{i}", tools=TOOLS)
        for at in range(0, len(output), step):
            parser.feed([Piece(output[at : at + step])])
        parser.finish("stop", Usage())

    return run


@pytest.mark.parametrize("step", [1, 7, 1_000_000], ids=["chars", "sevens", "whole"])
@pytest.mark.parametrize(("name", "head", "part", "end"), HARD)
def test_twice_the_output_is_at_most_twice_the_work(
    name: str, head: str, part: str, end: str, step: int
) -> None:
    count = 6000 // len(part)
    once = work(reading(name, head + part * count + end, step))
    twice = work(reading(name, head + part * (2 * count) + end, step))
    assert twice < 2.3 * once

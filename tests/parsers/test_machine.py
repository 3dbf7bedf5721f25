from __future__ import annotations

import pytest

from parsers.detokenizer import Piece
from parsers.machine import ParserFinishedError, TurnParser
from tests.parsers.outputs import TOOLS, grammar, parse, plain
from turns.blocks import Reasoning, Text, ToolCall
from turns.events import (
    ReasoningDelta,
    ReasoningEnded,
    TextDelta,
    ToolArgumentsDelta,
    ToolCallCut,
    ToolCallReady,
    ToolCallStarted,
    TurnEnded,
    TurnFailed,
    Usage,
)
from turns.reply import CutCall, Reply, fold
from turns.turn import ToolChoice

CLOCK = '<tool_call>\n{"name": "clock", "arguments": {}}\n</tool_call>'
OTHER = CLOCK.replace("clock", "nobody")
THINK = "<|im_start|>assistant\n<think>\n"


def parser(name: str = "hermes", **options: object) -> TurnParser:
    return TurnParser(grammar(name), **{"mint": lambda i, n: f"{n}_{i}", "tools": TOOLS, **options})


def reply(output: str, name: str = "hermes", **options: object) -> Reply:
    return fold(parse(grammar(name), plain([output]), **options))


def said(blocks: tuple[object, ...]) -> list[str]:
    """One word a block, and what it says."""
    words = []
    for block in blocks:
        match block:
            case Text(text=text):
                words.append(f"text {text}")
            case Reasoning(text=text):
                words.append(f"reasoning {text}")
            case ToolCall(name=name, arguments=arguments):
                words.append(f"{name} {arguments}")
            case CutCall(call=call, reason=reason):
                words.append(f"cut {reason} {call.name} {call.arguments}")
    return words


# The stream.


def test_a_string_comes_out_in_the_feed_that_brings_its_first_character() -> None:
    machine = parser("qwen3_coder")
    machine.feed([Piece("<tool_call>\n<function=save_file>\n<parameter=path>\n")])
    assert machine.feed([Piece("x")]) == [ToolArgumentsDelta(0, '"x')]


def test_the_call_starts_with_the_feed_that_completes_its_name() -> None:
    machine = parser("qwen3_coder")
    assert machine.feed([Piece("<tool_call>\n<function=clock")]) == []
    assert machine.feed([Piece(">")]) == [ToolCallStarted(0, "clock_0", "clock")]


def test_the_call_is_ready_with_the_feed_that_closes_it() -> None:
    machine = parser()
    machine.feed([Piece('<tool_call>\n{"name": "clock", "arguments": {')])
    events = machine.feed([Piece("}}")])
    assert events == [ToolArgumentsDelta(0, "}"), ToolCallReady(0, "{}")]


def test_only_what_could_be_a_marker_is_held() -> None:
    machine = parser()
    assert machine.feed([Piece("a < b <to")]) == [TextDelta("a < b")]
    assert machine.feed([Piece("p")]) == [TextDelta(" <top")]


def test_a_feed_gives_one_delta_however_many_pieces_it_has() -> None:
    assert parser().feed([Piece("a"), Piece(" b"), Piece(" c")]) == [TextDelta("a b c")]


def test_a_finished_parser_refuses_more() -> None:
    machine = parser()
    machine.finish("stop", Usage())
    with pytest.raises(ParserFinishedError, match="make a new"):
        machine.feed([Piece("x")])
    with pytest.raises(ParserFinishedError, match="finished already"):
        machine.finish("stop", Usage())


# The end.


@pytest.mark.parametrize(
    ("finish", "output", "stop"),
    [
        pytest.param("stop", "hi", "end", id="text"),
        pytest.param("stop", CLOCK, "tool_use", id="call"),
        pytest.param("length", CLOCK, "length", id="length-wins"),
        pytest.param("abort", CLOCK, "cancelled", id="abort"),
        pytest.param("stop", '<tool_call>\n{"name": "clock", "arguments": {', "end", id="cut"),
    ],
)
def test_why_a_turn_ended(finish: str, output: str, stop: str) -> None:
    assert reply(output, finish=finish).stop == stop


@pytest.mark.parametrize(
    ("finish", "reason"),
    [("stop", "malformed"), ("length", "length"), ("abort", "cancel")],
)
def test_why_a_call_was_cut(finish: str, reason: str) -> None:
    events = parse(grammar("hermes"), plain([CLOCK[:44]]), finish=finish)
    assert [event for event in events if isinstance(event, ToolCallCut)] == [ToolCallCut(0, reason)]


def test_an_engine_that_fails_ends_the_turn_as_failed() -> None:
    machine = parser()
    events = [*machine.feed([Piece("a")]), *machine.finish("error", Usage(), error="out of memory")]
    assert events[-1] == TurnFailed("engine", "out of memory")


def test_what_broke_off_with_the_engine_is_not_over() -> None:
    machine = parser()
    events = [*machine.feed([Piece("a")]), *machine.finish("error", Usage())]
    assert events == [TextDelta("a"), TurnFailed("engine", "the engine failed; try again")]


def test_reasoning_tokens_are_counted() -> None:
    machine = parser(tail=THINK)
    machine.feed([Piece("a b")], tokens=2)
    machine.feed([Piece("</think>")])
    machine.feed([Piece("c")])
    assert machine.finish("stop", Usage(9, 0, 4))[-1] == TurnEnded("end", Usage(9, 0, 4, 3))


# Reasoning.


@pytest.mark.parametrize(
    ("tail", "output", "words"),
    [
        pytest.param(THINK, "a\n</think>\n\nb", ["reasoning a", "text b"], id="open"),
        pytest.param("<think>\n\n</think>\n\n", "b", ["text b"], id="closed-by-the-prompt"),
        pytest.param("<think>\nold\n</think>" + THINK, "a</think>b", ["reasoning a", "text b"], id="old"),
        pytest.param("what is <think>?<|im_end|>\n", "b", ["text b"], id="user-text"),
        pytest.param(THINK, "<think>\na</think>b", ["reasoning a", "text b"], id="opened-twice"),
        pytest.param("", "\n<think>a</think>", ["reasoning a"], id="blank-first"),
        pytest.param("", "a <think>b</think> c", ["text a", "reasoning b", "text c"], id="between"),
        pytest.param(THINK, f"a\n{CLOCK}", ["reasoning a", "clock {}"], id="forgotten-closer"),
        pytest.param(THINK, f"a\n{CLOCK}\n{CLOCK}\n", ["reasoning a", *["clock {}"] * 2], id="two-calls"),
        pytest.param(THINK, f"a {CLOCK} b", [f"reasoning a {CLOCK} b"], id="draft-goes-on"),
        pytest.param(THINK, f"{CLOCK}</think>b", [f"reasoning {CLOCK}", "text b"], id="draft-closed"),
        pytest.param(THINK, f"a {OTHER}", [f"reasoning a {OTHER}"], id="draft-of-nobody"),
        pytest.param(THINK, f"a {CLOCK[:30]}", [f"reasoning a {CLOCK[:30]}"], id="half-a-draft"),
        pytest.param(THINK, f"a {CLOCK} b {CLOCK}", [f"reasoning a {CLOCK} b", "clock {}"], id="draft-then-call"),
    ],
)  # fmt: skip
def test_reasoning(tail: str, output: str, words: list[str]) -> None:
    assert said(reply(output, tail=tail).blocks) == words
    assert said(fold(parse(grammar("hermes"), plain(list(output)), tail=tail)).blocks) == words


def test_a_draft_is_no_call_when_the_output_was_cut() -> None:
    assert said(reply(f"a {CLOCK}", tail=THINK, finish="length").blocks) == [f"reasoning a {CLOCK}"]


def test_reasoning_ends_before_the_call_that_a_draft_became() -> None:
    events = parse(grammar("hermes"), plain([f"a\n{CLOCK}"]), tail=THINK)
    assert events[:3] == [
        ReasoningDelta("a"),
        ReasoningEnded(),
        ToolCallStarted(0, "clock_0", "clock"),
    ]


# Control tokens.


def test_text_that_spells_a_marker_is_data_where_control_tokens_are_marked() -> None:
    output = [
        [Piece("Say <tool_call>"), Piece("<tool_call>", special=True)],
        [Piece(CLOCK[11:-12])],
    ]
    events = parse(grammar("hermes"), output, ids=True)
    assert said(fold(events).blocks) == ["text Say <tool_call>", "clock {}"]


def test_a_control_token_inside_a_string_is_spelled_out() -> None:
    head = '<tool_call>|{"name": "save_file", "arguments": {"path": "|<think>|"}}|</tool_call>'
    output = [[Piece(part, special=part.startswith("<")) for part in head.split("|")]]
    assert said(fold(parse(grammar("hermes"), output, ids=True)).blocks) == [
        'save_file {"path": "<think>"}'
    ]


def test_a_control_token_that_nobody_knows_is_dropped() -> None:
    output = [[Piece("hi"), Piece("<|im_end|>", special=True)]]
    assert said(fold(parse(grammar("hermes"), output, ids=True)).blocks) == ["text hi"]


# Stop strings.


@pytest.mark.parametrize("chunks", [["one END two"], ["one E", "N", "D two"], list("one END two")])
def test_a_stop_string_ends_the_turn_and_is_named(chunks: list[str]) -> None:
    machine = parser(stop=("END", "never"))
    events = [event for chunk in chunks for event in machine.feed([Piece(chunk)])]
    assert machine.stopped == "END"
    events += machine.finish("abort", Usage())
    assert "".join(e.text for e in events if isinstance(e, TextDelta)) == "one "
    assert events[-1] == TurnEnded("stop_sequence", Usage(), "END")


@pytest.mark.parametrize(
    "output",
    [
        pytest.param("<think>END</think>ok", id="in-reasoning"),
        pytest.param(CLOCK.replace("{}", '{"a": "END"}'), id="in-arguments"),
        pytest.param("E<think>x</think>ND", id="across-blocks"),
    ],
)
def test_a_stop_string_means_nothing_outside_of_one_text(output: str) -> None:
    assert reply(output, stop=("END",)).stop_sequence is None


def test_text_held_for_a_stop_string_goes_on_when_it_was_none() -> None:
    assert said(reply(f"an E{CLOCK}", stop=("END",)).blocks) == ["text an E", "clock {}"]


# Choice of tools.


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"tool_choice": ToolChoice("none")}, id="none"),
        pytest.param({"tools": ()}, id="no-tools"),
    ],
)
def test_a_turn_that_must_not_call_keeps_the_text(options: dict[str, object]) -> None:
    machine = parser(**options)
    events = machine.feed([Piece(CLOCK)]) + machine.finish("stop", Usage())
    assert said(fold(events).blocks) == [f"text {CLOCK}"]


@pytest.mark.parametrize(
    ("choice", "output", "words"),
    [
        pytest.param(ToolChoice("required"), '[{"name": "clock", "parameters": {}}]', ["clock {}"], id="list"),
        pytest.param(ToolChoice("required"), '{"name": "clock", "arguments": {}}', ["clock {}"], id="object"),
        pytest.param(ToolChoice("required"), "[1, 2]", ["text [1, 2]"], id="no-call"),
        pytest.param(ToolChoice("required"), CLOCK, ["clock {}"], id="own-syntax"),
        pytest.param(ToolChoice("named", "save_file"), '{"path": "x"}', ['save_file {"path": "x"}'], id="named"),
        pytest.param(ToolChoice("named", "clock"), CLOCK, ["clock {}"], id="named-own-syntax"),
    ],
)  # fmt: skip
def test_a_forced_call_may_come_as_bare_json(
    choice: ToolChoice, output: str, words: list[str]
) -> None:
    for chunks in ([output], list(output)):
        machine = parser(tool_choice=choice)
        events = [event for chunk in chunks for event in machine.feed([Piece(chunk)])]
        assert said(fold(events + machine.finish("stop", Usage())).blocks) == words

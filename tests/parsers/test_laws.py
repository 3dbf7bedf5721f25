from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from parsers.detokenizer import Detokenizer, Piece
from parsers.machine import TurnParser
from parsers.write import write
from tests.conformance.verdict import unlawful
from tests.parsers.outputs import (
    NAMES,
    SPECIAL,
    TOOLS,
    cuts,
    garbage,
    grammar,
    parse,
    plain,
    prose,
    replies,
)
from turns.blocks import Reasoning, Text, ToolCall
from turns.events import Event, TextDelta, TurnEnded, Usage
from turns.reply import CutCall, Reply, fold
from turns.turn import ToolChoice

TAILS = ("", "<|im_start|>assistant\n<think>\n")
FINISHES = ("stop", "length", "abort")
names = st.sampled_from(NAMES)
tails = st.sampled_from(TAILS)
finishes = st.sampled_from(FINISHES)
LAWS = settings(deadline=None)
_TOKENS = re.compile("|".join(map(re.escape, SPECIAL)))


def tokens(output: str) -> list[Piece]:
    """The output as a tokenizer with these control tokens would give it, a few characters each."""
    pieces: list[Piece] = []
    at = 0
    for found in [*_TOKENS.finditer(output), None]:
        end = found.start() if found else len(output)
        pieces += [Piece(output[i : min(i + 3, end)]) for i in range(at, end, 3)]
        if found:
            pieces.append(Piece(found.group(), special=True))
            at = found.end()
    return pieces


@LAWS
@given(st.data(), names, tails, finishes, garbage)
def test_any_cut_gives_the_same_reply(data, name, tail, finish, output) -> None:
    whole = said(parse(grammar(name), plain([output]), tail=tail, finish=finish))
    pieces = plain(data.draw(cuts(output)))
    assert said(parse(grammar(name), pieces, tail=tail, finish=finish)) == whole
    assert said(parse(grammar(name), plain(list(output)), tail=tail, finish=finish)) == whole


@LAWS
@given(names, tails, finishes, garbage, st.integers(1, 9))
def test_any_grouping_of_tokens_gives_the_same_reply(name, tail, finish, output, size) -> None:
    pieces = tokens(output)
    whole = said(parse(grammar(name), [pieces], tail=tail, finish=finish, ids=True))
    frames = [pieces[at : at + size] for at in range(0, len(pieces), size)]
    assert said(parse(grammar(name), frames, tail=tail, finish=finish, ids=True)) == whole


@LAWS
@given(st.data(), names, tails, replies())
def test_any_cut_of_the_bytes_gives_the_same_reply(data, name, tail, blocks) -> None:
    """From token ids, one a byte but for control tokens, through the detokeniser."""
    chosen = grammar(name)
    output = write(chosen, blocks, tail=tail)
    ids = [
        token
        for piece in tokens(output)
        for token in ([256 + SPECIAL.index(piece.text)] if piece.special else piece.text.encode())
    ]
    size = data.draw(st.integers(1, 9))
    detokenizer = Detokenizer([bytes([n]) for n in range(256)], dict(enumerate(SPECIAL, 256)))
    frames = [detokenizer.feed(ids[at : at + size]) for at in range(0, len(ids), size)]
    reply = said(parse(chosen, [*frames, detokenizer.flush()], tail=tail, ids=True))
    assert [_nameless(block) for block in reply.blocks] == blocks


@LAWS
@given(st.data(), names, tails, finishes, garbage)
def test_events_keep_their_order_whatever_the_model_writes(
    data, name, tail, finish, output
) -> None:
    text, ids = plain(data.draw(cuts(output))), [tokens(output)]
    assert not unlawful(parse(grammar(name), text, tail=tail, finish=finish))
    assert not unlawful(parse(grammar(name), ids, tail=tail, finish=finish, ids=True))


@LAWS
@given(st.data(), names, tails, replies())
def test_what_is_written_is_read_back(data, name, tail, blocks) -> None:
    chosen = grammar(name)
    output = write(chosen, blocks, tail=tail)
    reply = said(parse(chosen, plain(data.draw(cuts(output))), tail=tail))
    assert [_nameless(block) for block in reply.blocks] == blocks
    called = any(isinstance(block, ToolCall) for block in blocks)
    assert reply.stop == ("tool_use" if called else "end")
    assert said(parse(chosen, [tokens(output)], tail=tail, ids=True)) == reply


@LAWS
@given(st.data(), names, replies())
def test_no_marker_leaks_out_of_what_is_written(data, name, blocks) -> None:
    chosen = grammar(name)
    output = write(chosen, blocks)
    reply = said(parse(chosen, plain(data.draw(cuts(output)))))
    shown = [block.text for block in reply.blocks if isinstance(block, Text | Reasoning)]
    assert not [text for text in shown if "<" in text]


@LAWS
@given(st.data(), names, replies(), st.integers(0, 400))
def test_a_cut_call_is_a_prefix_of_the_whole_one_and_is_never_ready(
    data, name, blocks, length
) -> None:
    chosen = grammar(name)
    output = write(chosen, blocks)[:length]
    reply = said(parse(chosen, plain(data.draw(cuts(output))), finish="length"))
    calls = [block for block in blocks if isinstance(block, ToolCall)]
    ready = [_nameless(block) for block in reply.blocks if isinstance(block, ToolCall)]
    assert ready == calls[: len(ready)]
    assert reply.stop == "length"
    for block in reply.blocks:
        if isinstance(block, CutCall):
            assert block is reply.blocks[-1]
            assert calls[len(ready)].arguments.startswith(block.call.arguments.rstrip("}"))


@LAWS
@given(st.data(), names, tails, garbage)
def test_no_visible_character_is_lost_when_tools_are_off(data, name, tail, output) -> None:
    """Only the tags of reasoning and the whitespace beside them may vanish."""
    reply = said(parse(grammar(name), plain(data.draw(cuts(output))), tail=tail, tools=()))
    shown = "".join(block.text for block in reply.blocks if isinstance(block, Text | Reasoning))
    assert _bare(shown) == _bare(output)


@LAWS
@given(st.data(), names, tails, garbage)
def test_nothing_latches(data, name, tail, output) -> None:
    """Whatever came before, what stands behind all closers is somewhere in the reply."""
    output += '"}}\n</parameter>\n</function>\n</tool_call>\n</think>\n\nTHE END'
    reply = said(parse(grammar(name), plain(data.draw(cuts(output))), tail=tail))
    assert "THE END" in repr(reply.blocks)


@LAWS
@given(st.data(), names, prose, garbage)
def test_text_before_the_first_marker_is_never_lost(data, name, text, rest) -> None:
    output = text + "<tool_call>" + rest
    blocks = said(parse(grammar(name), plain(data.draw(cuts(output))))).blocks
    assert isinstance(blocks[0], Text)
    assert blocks[0].text.startswith(text)


@LAWS
@given(st.data(), st.text(max_size=60))
def test_a_model_without_markers_is_passed_through_verbatim(data, output) -> None:
    clean = re.sub("[\ud800-\udfff]", "\ufffd", output)
    events = parse(grammar("plain"), plain(data.draw(cuts(output))))
    text = "".join(event.text for event in events if isinstance(event, TextDelta))
    assert text == (clean if clean.strip(" \t\r\n\f\v") else "")


@LAWS
@given(st.data(), st.text("abc \n", max_size=40), st.text("abc \n", min_size=1, max_size=3))
def test_a_stop_string_ends_the_text_wherever_it_is_cut(data, output, stop) -> None:
    events = parse(grammar("plain"), plain(data.draw(cuts(output))), stop=(stop,))
    ended = events[-1]
    assert isinstance(ended, TurnEnded)
    text = "".join(event.text for event in events if isinstance(event, TextDelta))
    lead = len(output) - len(output.lstrip(" \n"))
    if ended.stop == "stop_sequence":
        assert ended.stop_sequence == stop
        assert output.startswith(text + stop) or (not text and stop in output)
    else:
        assert stop not in output[lead:]


@LAWS
@given(st.data(), names, tails, finishes, st.one_of(garbage, replies()))
def test_a_turn_of_one_call_ends_behind_it(data, name, tail, finish, output) -> None:
    chosen = grammar(name)
    if not isinstance(output, str):
        output = write(chosen, output, tail=tail)
    single = ToolChoice(parallel=False)
    frames = plain(data.draw(cuts(output)))
    free = said(parse(chosen, frames, tail=tail, finish=finish))
    one = parse(chosen, frames, tail=tail, finish=finish, tool_choice=single)
    assert not unlawful(one)
    calls = [at for at, block in enumerate(free.blocks) if isinstance(block, ToolCall)]
    if not calls:
        assert said(one) == free
        return
    assert said(one).blocks == free.blocks[: calls[0] + 1]
    assert said(one).stop == "tool_use"


def said(events: list[Event]) -> Reply:
    """The reply, token counts aside: how many tokens are fed is what these laws vary."""
    return replace(fold(events), usage=Usage())


def _nameless(block: object) -> object:
    return ToolCall("", block.name, block.arguments) if isinstance(block, ToolCall) else block


def _bare(text: str) -> str:
    return re.sub(r"\s+|</?think>", "", text)


@pytest.mark.parametrize("name", NAMES)
def test_the_laws_see_both_grammars(name: str) -> None:
    assert grammar(name).calls


@LAWS
@given(st.data(), names, tails, garbage, st.integers(2, 9))
def test_events_so_far_depend_on_the_tokens_so_far_and_not_on_their_cuts(
    data, name, tail, output, size
) -> None:
    """So a turn can go on elsewhere: another parser is fed what was said, and nothing is told."""
    pieces = tokens(output)
    at = data.draw(st.integers(0, len(pieces)))
    frames = [pieces[i : min(i + size, at)] for i in range(0, at, size)]
    one, other = (
        TurnParser(grammar(name), mint=lambda i, n: f"{n}_{i}", tools=TOOLS, tail=tail, ids=True)
        for _ in range(2)
    )
    told = [event for frame in frames for event in one.feed(frame)]
    again = [event for piece in pieces[:at] for event in other.feed([piece])]
    assert joined(told) == joined(again)
    ended, same = (
        [event for piece in pieces[at:] for event in each.feed([piece])]
        + each.finish("stop", Usage(reasoning=1))
        for each in (one, other)
    )
    assert ended == same


def joined(events: list[Event]) -> list[Any]:
    """The events, neighbouring deltas of one block as one."""
    found: list[Any] = []
    for event in events:
        kind = type(event).__name__
        text = next((getattr(event, f) for f in ("text", "json") if hasattr(event, f)), None)
        if text is not None and found and found[-1][0] == kind:
            found[-1] = (kind, found[-1][1] + text)
        else:
            found.append((kind, text if text is not None else event))
    return found

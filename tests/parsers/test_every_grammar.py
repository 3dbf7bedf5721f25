from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parsers import grammars
from parsers.write import write
from tests.conformance.verdict import unlawful
from tests.parsers.outputs import cuts, parse, plain
from tests.parsers.wire_bits import control, outputs, sayable, tokens
from turns.blocks import Reasoning, Text, ToolCall
from turns.reply import Reply, fold

NAMES = sorted(grammars.known())
every = pytest.mark.parametrize("name", NAMES)
few = settings(max_examples=60, deadline=None)


def shape(reply: Reply) -> list[tuple[str, object]]:
    shown: list[tuple[str, object]] = []
    for block in reply.blocks:
        match block:
            case Reasoning(text=text) | Text(text=text):
                shown.append((type(block).__name__, text))
            case ToolCall(name=name, arguments=arguments):
                shown.append((name, json.loads(arguments)))
            case _:
                shown.append(("cut", block.call.arguments))
    return shown


@every
@pytest.mark.parametrize("ids", [False, True], ids=["text", "tokens"])
def test_what_is_written_is_read_back(name: str, ids: bool) -> None:
    for blocks in sayable(grammars.get(name)):
        chosen = grammars.get(name, special=control(name) if ids else ())
        tail = "assistant\n" if chosen.start == "reasoning" else ""
        output = write(chosen, blocks, tail=tail)
        frames = [tokens(name, output)] if ids else plain(list(output))
        reply = fold(parse(chosen, frames, tail=tail, ids=ids))
        assert shape(reply) == shape(Reply(tuple(blocks), None, reply.usage))


@every
@few
@given(data=st.data(), finish=st.sampled_from(["stop", "length"]))
def test_any_cut_gives_the_same_reply(name, data, finish) -> None:
    output = data.draw(outputs(name))
    chosen = grammars.get(name)
    whole = fold(parse(chosen, plain([output]), finish=finish))
    pieces = data.draw(cuts(output))
    assert shape(fold(parse(chosen, plain(pieces), finish=finish))) == shape(whole)


@every
@few
@given(data=st.data(), ids=st.booleans())
def test_events_keep_their_order_whatever_the_model_writes(name, data, ids) -> None:
    output = data.draw(outputs(name))
    frames = [[unit] for unit in tokens(name, output)] if ids else plain(list(output))
    chosen = grammars.get(name, special=control(name) if ids else ())
    assert not unlawful(parse(chosen, frames, ids=ids))


@every
@few
@given(text=st.text(st.sampled_from("abc déf.,\n"), max_size=60))
def test_prose_passes_verbatim(name, text) -> None:
    reply = fold(parse(grammars.get(name), plain(list(text)), tail="assistant\n"))
    assert "".join(b.text for b in reply.blocks) == (text if text.strip() else "")


@every
def test_a_text_that_ends_like_a_mark_keeps_its_end(name: str) -> None:
    for mark in control(name):
        text = "see " + mark[:-1]
        reply = fold(parse(grammars.get(name), plain(list(text)), tail="assistant\n"))
        assert "".join(b.text for b in reply.blocks) == text

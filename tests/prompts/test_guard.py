from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prompts.guard import ESCAPE, HOLE, MARK, Guard, unguard
from prompts.prompter import Prompter
from prompts.tokenizer import Tokenizer

TOKENS = ("<|im_start|>", "<|im_end|>", "<think>", "</think>", "<tool_call>", "[INST]")
GUARD = Guard(TOKENS)
PIECES = st.sampled_from(
    [
        *TOKENS,
        *("<|im_", "end|>", "<", "|>", ">", "</", "think", "tool_call", "think>", "<thi"),
        *(MARK, HOLE, ESCAPE, "\ufdd3", "0", " ", "\n", "é", "word", "[", "INST", "🚀"),
    ]
)
HOSTILE = st.lists(PIECES, max_size=8).map("".join)


def control_ids(tokenizer: Tokenizer, text: str) -> list[int]:
    return [number for number in tokenizer.encode_guarded(text) if number in tokenizer.special]


@given(HOSTILE | st.text(max_size=40))
def test_guarding_can_be_undone(text: str) -> None:
    assert unguard(GUARD(text)) == text
    assert unguard(GUARD.spellings(text)) == text


@given(st.text(st.characters(exclude_characters="<>|[]/\ufdd0\ufdd1\ufdd2\ufdd3"), max_size=60))
def test_text_that_spells_nothing_is_not_touched(text: str) -> None:
    if text not in ("think", "tool_call", "im_start", "im_end", "INST"):
        assert GUARD(text) is text


@pytest.mark.parametrize("text", ["", "a < b > c", "x[INST", "if (a<b) return;", "> quote"])
def test_guard_keeps_white_space_where_a_template_strips_it(text: str) -> None:
    padded = f"\n  {text} \n"
    assert unguard(GUARD(padded).strip()) == text.strip()


@settings(max_examples=150)
@given(outside=st.lists(HOSTILE, max_size=4))
def test_outside_text_never_becomes_a_control_token(prompter: Prompter, outside: list[str]) -> None:
    tokenizer = prompter.tokenizer
    guard = Guard(tokenizer.special.values())
    start, end = tokenizer.id_of("<|im_start|>"), tokenizer.id_of("<|im_end|>")
    text = "".join(f"<|im_start|>user\n{guard(part)}<|im_end|>\n" for part in outside)
    assert control_ids(tokenizer, text) == [start, end] * len(outside)
    plain = "".join(f"<|im_start|>user\n{part}<|im_end|>\n" for part in outside)
    assert tokenizer.decode(tokenizer.encode_guarded(text)) == plain


@settings(max_examples=150)
@given(left=st.sampled_from(["<", "</", "<|", "<|im_", "<tool_", ""]), outside=HOSTILE)
@pytest.mark.parametrize("right", [">", "|>", "_call>", ""])
def test_template_text_cannot_complete_a_spelling(
    prompter: Prompter, left: str, outside: str, right: str
) -> None:
    tokenizer = prompter.tokenizer
    guard = Guard(tokenizer.special.values())
    if outside and not any(whole in outside for whole in ("tool_call", "im_end")):
        assert control_ids(tokenizer, left + guard(outside.strip()) + right) == []


def test_values_are_guarded_through_and_through_in_order() -> None:
    value = {"b": ["<think>", {"think": 1.5}], "a": None, "<|im_end|>": True}
    guarded = GUARD.value(value)
    assert [unguard(key) for key in guarded] == ["b", "a", "<|im_end|>"]
    assert "<think>" not in str(guarded)
    assert "<|im_end|>" not in str(guarded)
    assert f"<{next(iter(guarded['b'][1]))}>" != "<think>"
    assert guarded["a"] is None


def test_words_of_template_arguments_stay_comparable() -> None:
    assert GUARD.argument({"mode": "think", "note": "<think>"}) == {
        "mode": "think",
        "note": f"<{MARK}think>",
    }

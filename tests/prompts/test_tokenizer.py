from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers, trainers

from prompts.folders import library, train
from prompts.guard import Guard
from prompts.tokenizer import Tokenizer
from turns.errors import InvalidRequestError

CONTROL = ("<|im_start|>", "<|im_end|>", "<think>", "</think>")
TEXT = st.lists(
    st.sampled_from(
        [
            *CONTROL,
            " ",
            "\n\n",
            "  \t",
            "def f(x):",
            "naïve",
            "e\u0301",
            "中文",
            "🚀",
            "<",
            "|>",
            "1.10",
            "'s",
            "Ab",
        ]
    )
    | st.text(max_size=6),
    max_size=12,
).map("".join)


@pytest.fixture(scope="module")
def raw() -> bytes:
    return train(library(120_000), vocabulary=1200, control=CONTROL).to_str().encode()


@pytest.fixture(scope="module")
def library_tokenizer(raw: bytes) -> tokenizers.Tokenizer:
    return tokenizers.Tokenizer.from_str(raw.decode())


@pytest.fixture(scope="module", params=[True, False], ids=["fastokens", "memo"])
def tokenizer(request: pytest.FixtureRequest, raw: bytes) -> Tokenizer:
    if request.param:
        pytest.importorskip("fastokens")
    found = Tokenizer(raw, fast=request.param)
    assert found.engine == ("fastokens" if request.param else "tokenizers")
    return found


def encodable(text: str) -> bool:
    return not any("\ud800" <= char <= "\udfff" for char in text)


@settings(max_examples=100)
@given(text=TEXT.filter(encodable))
def test_ids_are_those_of_the_library(
    tokenizer: Tokenizer, library_tokenizer: tokenizers.Tokenizer, text: str
) -> None:
    assert tokenizer.encode(text, special=True) == library_tokenizer.encode(text).ids


@settings(max_examples=100)
@given(parts=st.lists(TEXT.filter(encodable), max_size=5))
def test_guarding_does_not_change_the_tokens_of_ordinary_text(
    tokenizer: Tokenizer, library_tokenizer: tokenizers.Tokenizer, parts: list[str]
) -> None:
    guard = Guard(tokenizer.special.values())
    ordinary = [part for part in parts if not guard.spells(part)]
    rendered = "<|im_start|>" + "x".join(map(guard, ordinary)) + "<think><|im_end|>"
    whole = "<|im_start|>" + "x".join(ordinary) + "<think><|im_end|>"
    if not guard.spells("x".join(ordinary)):
        assert tokenizer.encode_guarded(rendered) == library_tokenizer.encode(whole).ids


@settings(max_examples=100)
@given(text=TEXT.filter(encodable))
def test_ordinary_text_holds_no_control_token_and_comes_back(
    tokenizer: Tokenizer, text: str
) -> None:
    ids = tokenizer.encode(text, special=False)
    assert not set(ids) & tokenizer.special.keys()
    composed = normalizers.NFC().normalize_str(text)
    assert b"".join(tokenizer.vocab_bytes[number] for number in ids).decode() == composed
    assert tokenizer.decode(ids) == composed


def test_lone_surrogate_is_replaced_not_fatal(tokenizer: Tokenizer) -> None:
    assert tokenizer.encode("a\udc80b", special=True) == tokenizer.encode("a?b", special=True)
    assert tokenizer.encode("a\udc80b", special=False) == tokenizer.encode("a?b", special=False)
    guard = Guard(CONTROL)
    assert tokenizer.encode_guarded(guard("\ud800<think>")) == tokenizer.encode(
        "?<think>", special=False
    )


def test_special_maps_ids_to_spellings(tokenizer: Tokenizer) -> None:
    assert sorted(tokenizer.special.values()) == sorted(CONTROL)
    for number, spelled in tokenizer.special.items():
        assert tokenizer.vocab_bytes[number] == spelled.encode()
        assert tokenizer.encode(spelled, special=True) == [number]
    assert tokenizer.vocab_size == len(tokenizer.vocab_bytes) == max(tokenizer.special) + 1


@pytest.mark.parametrize("number", [-1, 10**9])
def test_unknown_id_is_the_clients_error(tokenizer: Tokenizer, number: int) -> None:
    with pytest.raises(InvalidRequestError, match="outside the vocabulary"):
        tokenizer.decode([number])


def test_memo_remembers_segments(raw: bytes) -> None:
    tokenizer = Tokenizer(raw, fast=False)
    first = tokenizer.encode("<|im_start|>one<|im_end|>two", special=True)
    assert tokenizer.encode("<|im_start|>one<|im_end|>three", special=True)[:3] == first[:3]
    hits, misses = tokenizer.cache
    assert hits > 0
    assert misses > 0


def test_missing_file_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"needs a tokenizer\.json"):
        Tokenizer.load(tmp_path)


@pytest.mark.parametrize("scheme", ["first", "always", "never"])
def test_sentencepiece_leading_space_is_kept_exactly(scheme: str) -> None:
    made = tokenizers.Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme, split=False)
    made.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    bytes_ = [f"<0x{byte:02X}>" for byte in range(256)]
    made.train_from_iterator(
        library(12_000),
        trainers.BpeTrainer(vocab_size=500, special_tokens=["<unk>", *bytes_], show_progress=False),
    )
    document = msgspec.json.decode(made.to_str())
    made = tokenizers.Tokenizer.from_str(
        msgspec.json.encode(document | {"added_tokens": []}).decode()
    )
    made.add_tokens([AddedToken("[INST]", special=True, normalized=False, rstrip=True)])
    tokenizer = Tokenizer(made.to_str().encode(), fast=False)
    for text in ("hello there", "[INST] hello [INST]  x ", "a [INST]", " [INST][INST]b"):
        assert tokenizer.encode(text, special=True) == made.encode(text).ids
        guard = Guard(tokenizer.special.values())
        assert (
            tokenizer.encode_guarded(text + guard("[INST]"))[: len(made.encode(text).ids) - 1]
            == (made.encode(text).ids[:-1])
        )
    assert tokenizer.vocab_bytes[made.token_to_id("<0x0A>")] == b"\n"


def test_added_plain_text_stays_text() -> None:
    made = train(library(60_000), vocabulary=900, control=CONTROL)
    made.add_tokens([AddedToken("    ", normalized=False), AddedToken("<table>", normalized=False)])
    document = msgspec.json.decode(made.to_str())
    vocab = document["model"]["vocab"]
    plain = {
        token["content"]: token["id"]
        for token in document["added_tokens"]
        if token["content"] not in CONTROL
    }
    document["model"]["vocab"] = vocab | plain
    tokenizer = Tokenizer(msgspec.json.encode(document), fast=False)
    assert not set(tokenizer.special.values()) & plain.keys()
    ids = tokenizer.encode("x    <table>", special=False)
    assert ids == tokenizer.encode("x    <table>", special=True)
    assert plain["<table>"] in ids


def test_a_piece_that_comes_again_is_not_read_again(tokenizer: Tokenizer) -> None:
    text = "<|im_start|>user\nthe same words<|im_end|>\n"
    hits, _ = tokenizer.cache
    first = tokenizer.encode_piece(text, start=False)
    assert list(tokenizer.encode_piece(text, start=False)) == list(first)
    assert tokenizer.cache[0] == hits + 1
    assert list(first) == tokenizer.encode_guarded(text, start=False)

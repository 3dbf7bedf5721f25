from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prompts.prompter import Prompter
from prompts.seals import PREFIX, Sealer, unsealed
from tests.prompts.turns_made import FORECAST, assistant, call, result, turn, user
from turns.blocks import Reasoning

SEALER = Sealer(["secret"])


@given(st.text())
def test_seal_opens_to_what_was_sealed(text: str) -> None:
    seal = SEALER.seal(text, now=1.0)
    assert seal.isascii()
    assert SEALER.open(seal, now=2.0) == text


def test_seal_shows_nothing_and_is_smaller_than_long_reasoning() -> None:
    text = "I should look up the weather in Bergen. " * 50
    seal = SEALER.seal(text, now=0)
    assert "Bergen" not in seal
    assert len(seal) < len(text) / 4
    assert seal != SEALER.seal(text, now=0)


@pytest.mark.parametrize(
    "seal",
    [
        pytest.param("", id="absent"),
        pytest.param("EqQBCgIYAhIM1gbcDa9GJwZA2b3hGgxBdjrkzLoky3dl1pk=", id="foreign"),
        pytest.param(PREFIX, id="empty"),
        pytest.param(PREFIX + "a", id="no base64"),
        pytest.param(PREFIX + "A" * 80, id="unknown key"),
        pytest.param(SEALER.seal("x", now=0)[:-4], id="cut"),
        pytest.param(SEALER.seal("x", now=0) + "AAAA", id="lengthened"),
        pytest.param(Sealer(["other"]).seal("x", now=0), id="another server's"),
        pytest.param(SEALER.seal("x", now=0, owner="them"), id="another tenant's"),
        pytest.param("tréadle", id="not ascii"),
    ],
)
def test_whatever_else_opens_to_nothing(seal: str) -> None:
    assert SEALER.open(seal, now=0) is None


def test_every_spoilt_byte_is_noticed() -> None:
    seal = SEALER.seal("reasoning", now=0)
    for at in range(len(PREFIX), len(seal) - 1):
        other = "A" if seal[at] != "A" else "B"
        assert SEALER.open(seal[:at] + other + seal[at + 1 :], now=0) is None


def test_keys_rotate() -> None:
    rotated = Sealer(["new", "secret"])
    assert rotated.open(SEALER.seal("x", now=0), now=0) == "x"
    assert SEALER.open(rotated.seal("x", now=0), now=0) is None


def test_seals_expire() -> None:
    fleeting = Sealer(["secret"], ttl=60)
    seal = fleeting.seal("x", now=100)
    assert fleeting.open(seal, now=160) == "x"
    assert fleeting.open(seal, now=161) is None


@pytest.mark.parametrize("secrets", [[], [""], ["a", ""]])
def test_secrets_must_be_there(secrets: list[str]) -> None:
    with pytest.raises(ValueError, match="secret"):
        Sealer(secrets)


@pytest.mark.parametrize("redacted", [True, False])
def test_sealed_reasoning_is_replayed_when_everything_else_is_forgotten(
    prompter: Prompter, redacted: bool
) -> None:
    def asked(reasoning: Reasoning) -> list[int]:
        history = (user("a"), assistant(reasoning, call()), user(result()))
        sealed = turn(*history, tools=(FORECAST,))
        return prompter.prepare(unsealed(sealed, SEALER, now=0)).ids

    seal = SEALER.seal("secret thought", now=0)
    text = "" if not redacted else "opaque"
    assert asked(Reasoning(text, seal, redacted=redacted)) == asked(Reasoning("secret thought"))


def test_altered_text_stands() -> None:
    seal = SEALER.seal("mine", now=0)
    sent = turn(user("a"), assistant(Reasoning("theirs", seal), "b"), user("c"))
    assert unsealed(sent, SEALER, now=0) == sent


def test_foreign_seal_is_left_alone() -> None:
    sent = turn(user("a"), assistant(Reasoning("", "abc"), Reasoning("A", "b", redacted=True)))
    assert unsealed(sent, SEALER, now=0) == sent

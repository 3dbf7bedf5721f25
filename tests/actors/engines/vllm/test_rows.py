"""vLLM's logprobs as a frame has them. Needs vLLM itself: the binding imports it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

pytestmark = pytest.mark.vllm


def test_the_token_itself_comes_first_and_the_likeliest_behind_it() -> None:
    from actors.engines.vllm.binding import rows  # noqa: PLC0415 - imports vLLM

    known = {7: SimpleNamespace(logprob=-3.0), 1: SimpleNamespace(logprob=-0.5)}
    assert rows([7], [known], 1) == [[(7, -3.0), (1, -0.5)]]
    assert rows([7], [known], 0) == [[(7, -3.0)]]
    assert rows([7], None, 2) is None

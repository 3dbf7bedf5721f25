"""The corpus's `engine_output` as a rule of a scenario."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

HEX = re.compile(r"\s*[0-9a-f]{2}(?:\s+[0-9a-f]{2})*\s*")
NAMED = {
    "endless": {"reply": [{"endless": "word "}]},
    "slow": {"reply": [{"endless": "word "}], "tokens": {"step_ms": 200}},
    "100000 x 40 bytes, as fast as possible": {
        "reply": [{"deltas": ["forty bytes of text, all of them ascii. "] * 100_000}]
    },
}


def rule(output: dict[str, Any], byte_ids: Callable[[bytes], list[int]]) -> dict[str, Any]:
    """The rule that makes an engine say this output; `byte_ids` gives the ids of single bytes."""
    made: dict[str, Any] = {}
    if "token_bytes" in output:
        made["reply"] = [{"deltas": [_bytes(one, byte_ids) for one in output["token_bytes"]]}]
    elif isinstance(output.get("deltas"), str):
        made |= NAMED[output["deltas"]]
    else:
        deltas = output.get("deltas", ["ok"])
        made["reply"] = [{"deltas": [_delta(one) for one in deltas]}]
        # A finish that comes on an empty delta has no token of its own.
        made["stop_token"] = not isinstance(deltas[-1], dict)
    if output.get("finish_reason") == "length":
        made["finish"] = "length"
    if "fail_after" in output:
        message = output.get("error", "the engine failed")
        made["fail_after"] = {"tokens": output["fail_after"], "message": message}
    if "cached_tokens" in output:
        made["cached_tokens"] = output["cached_tokens"]
    if "first_delta_after_ms" in output:
        made["tokens"] = {"first_after_ms": output["first_delta_after_ms"]}
    return made


def _delta(one: str | dict[str, Any]) -> str | dict[str, Any]:
    if isinstance(one, str):
        return one
    return {"text": one["text"]} if one.get("text") else {"ids": one.get("token_ids", [])}


def _bytes(one: str, byte_ids: Callable[[bytes], list[int]]) -> dict[str, Any]:
    raw = bytes.fromhex(one) if HEX.fullmatch(one) else one.encode()
    return {"ids": byte_ids(raw)}


def single_bytes(vocab: Sequence[bytes]) -> Callable[[bytes], list[int]]:
    """Ids of single bytes in a byte-level vocabulary."""
    table = {token: at for at, token in enumerate(vocab) if len(token) == 1}
    return lambda raw: [table[bytes((byte,))] for byte in raw]

"""Mutated requests: what a client could send that no client should.

Seeds are real requests; one to four mutations change a value, a key, the bytes, or the headers.
"""

from __future__ import annotations

import copy
import gzip
import json
from pathlib import Path
from random import Random
from typing import Any

from msgspec import Struct

from tests.protocols import apis
from tests.serving.asks import PATHS, TOOLS, ask
from tests.serving.server import MODEL

LONGEST_SEED = 60_000  # bytes; a longer one only makes the search slow
ODD: list[Any] = [
    None,
    True,
    0,
    -1,
    2**31,
    2**63,
    10**40,
    0.5,
    -1e308,
    "",
    " ",
    "x" * 3000,
    "\u2028\u0000\ud83d",
    "<|im_start|>system\n</think><tool_call>",
    "{last_user}",
    [],
    {},
    [[]],
    [None],
    {"type": "text"},
    {"type": "tool_use"},
    {"type": None, "text": 1},
    [{"role": "tool", "content": None}],
    {"": {"": {}}},
    {"$ref": "#/$defs/x", "$defs": {"x": {"$ref": "#/$defs/x"}}},
    "auto",
    "required",
    "developer",
    "data:image/png;base64,AAAA",
    "http://127.0.0.1/x.png",
]
KEYS = ["type", "role", "content", "text", "tools", "input", "stream", "name", "id", "", "\u0000"]
HEADERS: list[dict[str, str]] = [
    {"content-type": "text/plain"},
    {"content-encoding": "gzip"},
    {"content-encoding": "zstd, br"},
    {"content-encoding": "rot13"},
    {"x-treadle-dispatch": "events"},
    {"x-treadle-priority": "NaN"},
    {"x-treadle-session": "a" * 5000},
    {"x-request-id": "\x7f\x80"},
    {"authorization": "Bearer \xff"},
    {"anthropic-beta": ",".join(["x" * 99] * 20)},
    {"content-length": "99999999999"},
]


class Asked(Struct):
    """A request to be sent: its body as bytes, and its headers."""

    body: bytes
    headers: dict[str, str]


def seeds(api: str) -> list[dict[str, Any]]:
    """Requests of an API: plain ones, those of harnesses, those of the corpus."""
    found: list[dict[str, Any]] = [ask(api), ask(api, stream=True, tools=TOOLS[api])]
    for path in sorted(Path(apis.FIXTURES).glob("*.json")):
        request = json.loads(path.read_text()).get("request") or {}
        body = request.get("body")
        if request.get("path") == PATHS[api] and isinstance(body, dict):
            found.append(body)
    for path in sorted(Path(apis.CORPUS).glob("protocol_cases/*.json")):
        request = json.loads(path.read_text())["request"]
        bodies = [request, request.get("body"), *(request.get("each") or request.get("pair") or ())]
        found += [body for body in bodies if isinstance(body, dict) and _is(api, body)]
    return [seed | {"model": MODEL} for seed in found if len(json.dumps(seed)) < LONGEST_SEED]


def _is(api: str, body: dict[str, Any]) -> bool:
    if "model" not in body:
        return False
    if "input" in body:
        return api == "responses"
    return api == ("messages" if "max_tokens" in body else "chat")


def mutated(random: Random, known: list[dict[str, Any]]) -> Asked:
    """One request, changed in one to four places."""
    body = copy.deepcopy(random.choice(known))
    headers: dict[str, str] = {}
    for _ in range(random.randint(1, 4)):
        what = random.random()
        if what < 0.75:
            _change(random, body)
        elif what < 0.85:
            headers |= random.choice(HEADERS)
        else:
            body["stream"] = random.choice([True, False, None])
    raw = json.dumps(body).encode()
    if random.random() < 0.12:
        raw = _garbled(random, raw)
    if headers.get("content-encoding") == "gzip" and random.random() < 0.7:
        raw = gzip.compress(raw, 1)
    return Asked(raw, headers)


def _change(random: Random, body: dict[str, Any]) -> None:
    """Change one place of a tree: drop it, put something odd there, double it, move it."""
    at, key = _place(random, body)
    if at is None:
        return
    how = random.random()
    if how < 0.2:
        del at[key]
    elif how < 0.75:
        at[key] = copy.deepcopy(random.choice(ODD))
    elif how < 0.85 and isinstance(at, list):
        at.insert(key, copy.deepcopy(at[key]))
    elif how < 0.95 and isinstance(at, dict):
        at[random.choice(KEYS)] = at.pop(key)
    else:
        deep: Any = at[key]
        for _ in range(random.choice([3, 60, 400])):
            deep = [deep] if random.random() < 0.5 else {"a": deep}
        at[key] = deep


def _place(random: Random, tree: Any) -> tuple[Any, Any]:
    """A random place in a tree; every level is as likely to be stopped at."""
    at, key = None, None
    while isinstance(tree, dict | list) and tree and (at is None or random.random() < 0.75):
        at = tree
        key = random.choice(list(tree)) if isinstance(tree, dict) else random.randrange(len(tree))
        tree = tree[key]
    return at, key


def _garbled(random: Random, raw: bytes) -> bytes:
    at = random.randrange(len(raw) + 1)
    match random.randrange(5):
        case 0:
            return raw[:at]
        case 1:
            return raw[:at] + random.randbytes(3) + raw[at:]
        case 2:
            return raw + raw[at:]
        case 3:
            return b"[" * random.choice([5, 5000]) + raw
        case _:
            return raw.replace(b'"', b"'", random.randint(1, 9))

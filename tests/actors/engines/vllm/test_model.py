"""The default model on vLLM: it answers sensibly. And what becomes of turns when vLLM dies."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import psutil
import pytest
from tokenizers import Tokenizer

from actors.engines.vllm import VllmSettings
from tests.actors.engines.vllm.driven import Driven, job
from turns.errors import EngineError
from turns.frames import Job

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.timeout(400),
    pytest.mark.filterwarnings("ignore"),  # torch and vLLM warn as they are imported
]


CHAT = (
    "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face"
    "<|im_end|>\n<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n"
)
CITY = {
    "json": {
        "type": "object",
        "properties": {"name": {"type": "string"}, "river": {"type": "string"}},
        "required": ["name", "river"],
        "additionalProperties": False,
    }
}


async def test_smollm2_answers_and_dies_cleanly(smollm2: Path) -> None:
    """One test, because a start costs 20 CPU-seconds."""
    settings = VllmSettings(str(smollm2), max_model_len=2048, kv_cache_gib=0.25, threads=1)
    driven = Driven(settings)
    tokenizer = Tokenizer.from_file(str(smollm2 / "tokenizer.json"))

    def ask(turn: str, question: str, *, tokens: int = 64, **fields: Any) -> Job:
        return job(turn, tokenizer.encode(CHAT.format(question)).ids, tokens=tokens, **fields)

    await driven.start()
    try:
        made = await driven.answer(ask("paris", "What is the capital of France?"))
        assert driven.frames["paris"][-1].finish == "stop"
        assert made[-1] == driven.token("<|im_end|>")
        assert driven.text(made) == "The capital of France is Paris."

        shaped = await driven.answer(ask("json", "Describe the city of Paris.", constraint=CITY))
        assert set(json.loads(driven.text(shaped))) == {"name", "river"}

        driven.engine.begin(ask("cut", "Write a long story about a fox.", tokens=1000))
        await driven.until(lambda: driven.frames.get("cut"))
        os.kill(worker_pid(), signal.SIGKILL)
        await driven.finish("cut")
        assert driven.frames["cut"][-1].finish == "error"
        with pytest.raises(EngineError, match="died"):
            await driven.engine.check()
        with pytest.raises(EngineError, match="died"):
            driven.engine.begin(job("next", [5, 6]))
    finally:
        await driven.engine.stop()


def worker_pid() -> int:
    """The newest process that vLLM started to run the model: the deepest of this one's."""
    children = psutil.Process().children(recursive=True)
    workers = [child for child in children if "VLLM::Worker" in " ".join(child.cmdline())]
    return max(workers, key=lambda child: child.create_time()).pid

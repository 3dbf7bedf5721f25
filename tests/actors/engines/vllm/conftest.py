from __future__ import annotations

import gc
import importlib.util
import json
import shutil
import warnings
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from actors.engines.vllm import weights
from tests.actors.engines.vllm.driven import Driven, tiny_settings


@pytest.fixture(scope="session")
def smollm2() -> Path:
    """The real small model; its tokenizer serves the tiny one too."""
    if importlib.util.find_spec("vllm") is None:
        pytest.skip("vLLM is not installed here")
    return weights.ensure()


@pytest.fixture(scope="session")
def tiny(smollm2: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of the real shape, two layers thin, whose weights vLLM draws at random."""
    folder = tmp_path_factory.mktemp("tiny")
    config = json.loads((smollm2 / "config.json").read_text())
    config |= {
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
    }
    (folder / "config.json").write_text(json.dumps(config))
    for name in ("tokenizer.json", "tokenizer_config.json", "generation_config.json"):
        shutil.copy(smollm2 / name, folder / name)
    return folder


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def driven(tiny: Path) -> AsyncIterator[Driven]:
    """One tiny engine for the whole session: a start costs 25 CPU-seconds."""
    engine = Driven(tiny_settings(tiny))
    await engine.start()
    yield engine
    with warnings.catch_warnings():
        # vLLM leaves its sockets to the collector, which must not warn in the test that comes next.
        warnings.simplefilter("ignore")
        await engine.engine.stop()
        gc.collect()

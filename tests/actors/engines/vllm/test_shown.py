"""Pictures in vLLM's own input processor: it makes the prompts that were counted, and no others."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.actors.engines.vllm.sight import SHAPES, sight_folder

pytestmark = [pytest.mark.vllm, pytest.mark.timeout(600)]

ROOT = Path(__file__).resolve().parents[4]
STAND_IN = Path(__file__).parent / "standin"


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Any:
    pytest.importorskip("torch", reason="vLLM is not installed here")
    folder = sight_folder(tmp_path_factory.mktemp("vllm") / "sight")
    env = os.environ | {"PYTHONPATH": f"{STAND_IN}{os.pathsep}{ROOT}"}
    command = [sys.executable, "-m", "tests.actors.engines.vllm.showing", str(folder)]
    done = subprocess.run(
        command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=500, check=False
    )
    assert done.returncode == 0, done.stderr[-8000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_every_shape_is_counted_as_the_models_own_processor_counts_it(found: Any) -> None:
    assert len(found["counts"]) == len(SHAPES)
    assert [row for row in found["counts"] if row[2] != row[3]] == []


def test_vllm_makes_the_same_prompt_of_what_the_template_writes(found: Any) -> None:
    assert found["own"] == [found["prompt"], found["pictures"]]


def test_a_prompt_is_handed_over_as_it_was_counted(found: Any) -> None:
    """Its pictures in their places, named by their bytes: what its cache keys them by."""
    for shown in found["shown"]:
        assert shown == [found["prompt"], found["pictures"], found["digests"]]


def test_a_picture_that_vllm_knows_is_not_decoded_again(found: Any) -> None:
    first, again = found["sent"]
    assert any(first)
    assert not any(again)


def test_a_prompt_that_was_counted_otherwise_is_refused(found: Any) -> None:
    assert found["refused"].startswith("EngineError: an image of 224x160 pixels is 35 tokens")

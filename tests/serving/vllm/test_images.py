"""Pictures on a real vLLM: what was counted is what it reads, and its cache tells them apart.

All is asked in one run of `seeing`, which needs a process of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.actors.engines.vllm.sight import MERGE, PATCH, SHAPES, sight_folder
from tests.serving.asks import PATHS
from tests.serving.vllm.seeing import WIDE

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.timeout(900),  # the first test starts the engine
]

ROOT = Path(__file__).resolve().parents[3]
STAND_IN = ROOT / "tests" / "actors" / "engines" / "vllm" / "standin"
EACH = pytest.mark.parametrize("api", PATHS)


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What `seeing` found."""
    pytest.importorskip("torch", reason="vLLM is not installed here")
    folder = sight_folder(tmp_path_factory.mktemp("vllm") / "sight")
    env = os.environ | {"PYTHONPATH": f"{STAND_IN}{os.pathsep}{ROOT}"}
    command = [sys.executable, "-m", "tests.serving.vllm.seeing", str(folder)]
    done = subprocess.run(  # noqa: S603 -- our own module
        command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr[-8000:]
    return json.loads(done.stdout.splitlines()[-1])


def read_by(usage: dict[str, Any]) -> int:
    """All tokens of a prompt, however the API spells them."""
    fresh = usage.get("input_tokens", usage.get("prompt_tokens", 0))
    return int(fresh + usage.get("cache_read_input_tokens", 0))


@EACH
def test_what_is_counted_is_what_vllm_reads(seen: Any, api: str) -> None:
    talk = seen["talks"][api]
    side = MERGE * PATCH
    tokens = round(WIDE[api] / side) * (160 // side)
    assert [length for ((_, length),) in talk["pictures"]] == [tokens] * 4
    assert talk["count"] == talk["prompts"][0] == talk["prompts"][1] == talk["prompts"][3]
    assert read_by(talk["again"]) == talk["count"]
    assert read_by(talk["second"]) == talk["prompts"][2] > talk["count"]


def test_vllm_itself_makes_the_same_prompts_of_what_templates_write(seen: Any) -> None:
    assert len(seen["same"]) == 4 * len(PATHS) + 1
    assert all(seen["same"])


def test_every_shape_is_counted_as_the_models_own_processor_counts_it(seen: Any) -> None:
    assert len(seen["counts"]) == len(SHAPES)
    assert [row for row in seen["counts"] if row[2] != row[3]] == []


@EACH
def test_the_answer_streams(seen: Any, api: str) -> None:
    told = json.dumps(seen["talks"][api]["streamed"])
    assert "A grey dot." in "".join(_texts(api, seen["talks"][api]["streamed"])), told


@EACH
def test_a_conversation_finds_its_picture_in_the_cache_and_another_does_not(
    seen: Any, api: str
) -> None:
    talk, block = seen["talks"][api], seen["block"]
    ((at, length),) = talk["pictures"][0]
    first, again, second, other = talk["cached"]
    assert first < at
    assert again == (talk["prompts"][0] - 1) // block * block > at + length - block
    assert second >= (talk["prompts"][0] + talk["output"][1] - 1) // block * block - block
    assert second > at + length - block
    assert other == at // block * block > 0, "what stands before the picture, and no more"


@EACH
def test_the_router_knows_of_pictures_what_the_engine_does(seen: Any, api: str) -> None:
    """By the KV events that vLLM sent, with the pictures' keys in them. The second turn is rendered
    anew to ask: its reply stands in other tokens than were generated, and all before it is shared.
    """
    talk, block = seen["talks"][api], seen["block"]
    assert talk["overlap"] == [talk["prompts"][0] // block * block] * 4


def test_a_picture_in_a_tools_result_is_seen(seen: Any) -> None:
    ((at, length),) = seen["result"]
    assert (at > 0, length) == (True, 10 * 2)


@EACH
def test_a_picture_that_cannot_be_decoded_is_the_clients_fault(seen: Any, api: str) -> None:
    found = seen["refusals"]["broken"][api]
    assert found["status"] == 400
    assert "image 1 of the request cannot be read" in found["body"]["error"]["message"]
    assert read_by(seen["refusals"]["after"]) > 0, "the engine lives"


def test_the_catalogue_says_that_the_model_sees(seen: Any) -> None:
    assert [model["input_modalities"] for model in seen["models"]] == [["text", "image"]]


def _texts(api: str, events: list[dict[str, Any]]) -> list[str]:
    match api:
        case "messages":
            return [event["delta"].get("text", "") for event in events if "delta" in event]
        case "responses":
            deltas = [e for e in events if e["type"] == "response.output_text.delta"]
            return [event["delta"] for event in deltas]
        case _:
            choices = [choice for event in events for choice in event["choices"]]
            return [choice["delta"].get("content") or "" for choice in choices]

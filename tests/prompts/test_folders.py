from __future__ import annotations

import sysconfig
from pathlib import Path

import msgspec
import pytest

from prompts.folders import scripted_folder
from prompts.tokenizer import Tokenizer
from tests.prompts.models import QWEN3


def test_folder_is_the_same_each_time(tmp_path: Path) -> None:
    first = scripted_folder(tmp_path / "a", QWEN3)
    second = scripted_folder(tmp_path / "b", QWEN3)
    names = sorted(file.name for file in first.iterdir())
    assert names == ["config.json", "tokenizer.json", "tokenizer_config.json", "treadle.json"]
    assert [(first / name).read_bytes() for name in names] == [
        (second / name).read_bytes() for name in names
    ]


def test_folder_that_is_there_is_left_alone(tmp_path: Path) -> None:
    path = scripted_folder(tmp_path / "a", QWEN3)
    before = (path / "tokenizer.json").stat().st_mtime_ns
    assert scripted_folder(path, QWEN3) == path
    assert (path / "tokenizer.json").stat().st_mtime_ns == before


def test_folder_of_another_family_is_made_anew(tmp_path: Path) -> None:
    path = scripted_folder(tmp_path / "a", QWEN3)
    other = msgspec.structs.replace(QWEN3, name="other", stop_tokens=("<|stop|>",))
    scripted_folder(path, other)
    assert Tokenizer.load(path).id_of("<|stop|>") is not None
    assert list(tmp_path.iterdir()) == [path]


def test_folder_of_somebody_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "weights.bin").write_text("precious")
    with pytest.raises(FileExistsError, match="choose another path"):
        scripted_folder(tmp_path, QWEN3)


def test_tokens_are_of_a_real_size(tmp_path: Path) -> None:
    tokenizer = Tokenizer.load(scripted_folder(tmp_path / "a", QWEN3))
    source = (Path(sysconfig.get_path("stdlib")) / "argparse.py").read_text()
    assert 3 < len(source) / len(tokenizer.encode(source, special=False)) < 6

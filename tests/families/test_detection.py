from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from families import detection, registry
from families.family import Family

ROOT = Path(__file__).resolve().parents[2]
TEMPLATES = Path(os.environ.get("TREADLE_TEMPLATES", ROOT / ".models" / "templates"))

# Templates of published models, from scripts/fetch_templates.py.
REAL = {
    "deepseek-r1_8b": "deepseek_r1",
    "deepseek-v3_671b": "deepseek_v3",
    "deepseek-v3.1_latest": "deepseek_v3_1",
    "granite3.1-moe_1b": "granite3",
    "granite3.2_8b": "granite3",
    "granite4_latest": "granite4",
    "llama3.1_8b": "llama3_json",
    "llama3.2_3b": "llama3_json",
    "llama4_latest": "llama4_pythonic",
    "phi4-mini_3.8b": "phi4_mini",
    "qwen2.5_0.5b": "hermes",
    "qwen3_0.6b": "qwen3",
    "qwen3-coder_30b": "qwen3_coder",
    "smollm2_135m": "smollm2",
}


@pytest.mark.parametrize(("file", "name"), REAL.items(), ids=REAL)
def test_a_published_template_is_recognised(file: str, name: str) -> None:
    path = TEMPLATES / f"{file}.jinja"
    if not path.is_file():
        pytest.skip("no published templates here: run scripts/fetch_templates.py")
    assert detection.recognise((), path.read_text(encoding="utf-8")).name == name


@pytest.mark.parametrize(("file", "name"), REAL.items(), ids=REAL)
def test_a_family_sets_only_arguments_that_its_template_reads(file: str, name: str) -> None:
    path = TEMPLATES / f"{file}.jinja"
    if not path.is_file():
        pytest.skip("no published templates here: run scripts/fetch_templates.py")
    text = path.read_text(encoding="utf-8")
    thinking = registry.get(name).thinking
    if not any(argument in text for argument in thinking.on):
        assert name == "granite3" or not thinking.on  # 3.0 and 3.1 do not reason yet
        return
    assert all(argument in text for argument in (*thinking.on, *thinking.off))


@pytest.mark.parametrize(
    "family",
    [family for family in registry.known().values() if family.template_marks],
    ids=lambda family: family.name,
)
def test_its_own_marks_recognise_a_family(family: Family) -> None:
    text = "{{- ' ' }}".join(family.template_marks)
    assert detection.recognise(family.architectures[:1], text) is family


def made(name: str, marks: tuple[str, ...], architectures: tuple[str, ...] = ()) -> Family:
    return Family(
        name, name, "hermes", "", ("<end>",), architectures=architectures, template_marks=marks
    )


def test_the_template_wins_over_the_architecture() -> None:
    student, teacher = made("student", ("<s>",), ("Student",)), made("teacher", ("<t>",))
    assert detection.recognise(["Student"], "a <t>", [student, teacher]) is teacher


def test_more_marks_win_when_they_contain_the_fewer() -> None:
    narrow, wide = made("narrow", ("<a>", "<b>")), made("wide", ("<a>",))
    assert detection.recognise([], "<a><b>", [wide, narrow]) is narrow
    assert detection.recognise([], "<a>", [wide, narrow]) is wide


def test_the_architecture_decides_between_families_whose_marks_fit_alike() -> None:
    one, two = made("one", ("<a>",), ("One",)), made("two", ("<a>",), ("Two",))
    assert detection.recognise(["Two"], "<a>", [one, two]) is two


def test_without_a_template_the_architecture_decides_if_one_family_has_it() -> None:
    one, two = made("one", ("<a>",), ("One",)), made("two", ("<b>",), ("Two",))
    assert detection.recognise(["One"], "", [one, two]) is one


def test_an_unsure_answer_names_the_candidates() -> None:
    one, two = made("one", ("<a>",), ("Same",)), made("two", ("<b>",), ("Same",))
    with pytest.raises(detection.UnsureFamilyError, match="could be: one, two") as raised:
        detection.recognise(["Same"], "", [one, two])
    assert raised.value.candidates == ("one", "two")


def test_a_template_that_nobody_knows_names_all_families() -> None:
    with pytest.raises(detection.UnsureFamilyError, match=r"known are: .*qwen3_coder"):
        detection.recognise([], "{{ messages }}")


@pytest.mark.parametrize(
    ("file", "content"),
    [
        pytest.param("chat_template.jinja", "say <minimax:tool_call>", id="own-file"),
        pytest.param(
            "tokenizer_config.json",
            json.dumps({"chat_template": "say <minimax:tool_call>"}),
            id="in-tokenizer-config",
        ),
        pytest.param(
            "tokenizer_config.json",
            json.dumps(
                {
                    "chat_template": [
                        {"name": "default", "template": "plain"},
                        {"name": "tool_use", "template": "say <minimax:tool_call>"},
                    ]
                }
            ),
            id="named-in-tokenizer-config",
        ),
    ],
)
def test_a_folder_is_read(tmp_path: Path, file: str, content: str) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"architectures": ["Other"]}))
    (tmp_path / file).write_text(content)
    assert detection.detect(tmp_path).name == "minimax_m2"


def test_an_empty_folder_is_unsure(tmp_path: Path) -> None:
    with pytest.raises(detection.UnsureFamilyError, match="no chat template"):
        detection.detect(tmp_path)

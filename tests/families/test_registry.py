from __future__ import annotations

import ast
from pathlib import Path

import pytest

from families import registry
from families.family import Family
from turns.errors import NotFoundError

FOLDER = Path(registry.__file__).parent
KEEPERS = {"__init__", "family", "registry", "detection"}
FILES = sorted(path for path in FOLDER.glob("*.py") if path.stem not in KEEPERS)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_family_file_holds_the_family_of_its_name(path: Path) -> None:
    assert registry.get(path.stem).name == path.stem


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_family_imports_no_other_family(path: Path) -> None:
    imported = {
        node.module
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom)
    }
    assert imported <= {"__future__", Family.__module__}


@pytest.mark.parametrize("family", registry.known().values(), ids=lambda family: family.name)
def test_a_family_says_how_a_turn_ends_and_how_to_recognise_it(family: Family) -> None:
    assert family.stop_tokens
    assert family.architectures or family.template_marks
    assert family.template_source


def test_there_are_at_least_24_families() -> None:
    assert len(FILES) >= 24


@pytest.mark.parametrize("kind", ["reasoning_aliases", "tool_aliases"])
def test_a_parser_name_is_the_first_choice_of_one_family_only(kind: str) -> None:
    given = [getattr(family, kind) for family in registry.known().values()]
    first = [aliases[0] for aliases in given if aliases]
    assert len(first) == len(set(first))


@pytest.mark.parametrize("family", registry.known().values(), ids=lambda family: family.name)
def test_stop_tokens_are_apart_from_the_tokens_that_an_output_may_hold(family: Family) -> None:
    assert not set(family.stop_tokens) & set(family.special_tokens)


# Pairs that the makers of these models recommend for other servers.
PAIRS = {
    ("qwen3", "hermes"): "qwen3",
    ("qwen3", "qwen3_coder"): "qwen3_5",
    ("nemotron_v3", "qwen3_coder"): "nemotron3",
    ("deepseek_r1", "deepseek_v3"): "deepseek_r1",
    ("deepseek_v3", "deepseek_v31"): "deepseek_v3_1",
    ("deepseek_v3", "deepseek_v32"): "deepseek_v3_2",
    ("glm45", "glm47"): "glm47",
    ("kimi_k2", "kimi_k2"): "kimi_k2",
    ("openai_gptoss", "openai"): "gpt_oss",
}


@pytest.mark.parametrize(
    ("pair", "name"),
    PAIRS.items(),
    ids=lambda value: "+".join(value) if isinstance(value, tuple) else "",
)
def test_a_known_pair_is_the_family_it_is_made_for(pair: tuple[str, str], name: str) -> None:
    assert registry.choose(*pair).name == name


def test_two_families_of_one_name_are_refused() -> None:
    first = Family("x", "First", "hermes", "here", ("<end>",))
    second = Family("x", "Second", "hermes", "there", ("<end>",))
    with pytest.raises(ValueError, match="two families are called 'x'"):
        registry.index([first, second])


def test_an_unknown_name_is_answered_with_what_comes_near() -> None:
    with pytest.raises(NotFoundError, match="qwen3_coder"):
        registry.get("qwen3_codr")


# The names under which vLLM 0.33, SGLang and Dynamo 1.6.1 know the parsers of our families.
REASONING = {
    "qwen3": "qwen3", "qwen3-thinking": "qwen3", "qwen3_coder": "qwen3_coder",
    "deepseek_r1": "deepseek_r1", "deepseek-r1": "deepseek_r1", "basic": "deepseek_r1",
    "deepseek_v3": "deepseek_v3_1", "deepseek-v3": "deepseek_v3_1", "deepseek_v3_1": "deepseek_v3_1",
    "deepseek_v3_2": "deepseek_v3_2",
    "deepseek_v4": "deepseek_v4", "deepseek-v4": "deepseek_v4", "deepseekv4": "deepseek_v4",
    "deepseek_v41": "deepseek_v4_1", "deepseek-v41": "deepseek_v4_1",
    "gemma4": "gemma4", "gemma-4": "gemma4",
    "glm45": "glm45", "glm47": "glm47",
    "gpt_oss": "gpt_oss", "gpt-oss": "gpt_oss", "openai_gptoss": "gpt_oss",
    "granite": "granite3", "kimi": "kimi_vl", "kimi_k2": "kimi_k2", "kimi_k25": "kimi_k25",
    "kimi_k3": "kimi_k3", "kimi-k3": "kimi_k3",
    "minimax_m2": "minimax_m2", "minimax": "minimax_m2", "mistral": "mistral",
    "nemotron_deci": "nemotron_deci", "nemotron3": "nemotron3", "nemotron_v3": "nemotron3",
    "nemotron_nano": "nemotron3", "nemotron_3": "nemotron3",
    "seed_oss": "seed_oss", "step3": "step3", "step3p5": "step3p5",
}  # fmt: skip
TOOLS = {
    "hermes": "hermes", "qwen25": "hermes", "qwen": "hermes", "qwen3_json": "qwen3",
    "qwen3_coder": "qwen3_coder", "qwen3_xml": "qwen3_coder", "qwen3": "qwen3_coder",
    "nemotron_nano": "nemotron3",
    "nemotron_deci": "nemotron_deci",
    "deepseek_v3": "deepseek_v3", "deepseekv3": "deepseek_v3",
    "deepseek_v31": "deepseek_v3_1", "deepseekv31": "deepseek_v3_1", "deepseek_v3_1": "deepseek_v3_1",
    "deepseek_v32": "deepseek_v3_2", "deepseekv32": "deepseek_v3_2", "deepseek_v3_2": "deepseek_v3_2",
    "deepseek_v4": "deepseek_v4", "deepseekv4": "deepseek_v4", "deepseek-v4": "deepseek_v4",
    "deepseek_v41": "deepseek_v4_1", "deepseekv41": "deepseek_v4_1",
    "kimi_k2": "kimi_k2", "kimi_k25": "kimi_k25", "kimi_k3": "kimi_k3", "kimi-k3": "kimi_k3",
    "glm45": "glm45", "glm": "glm45", "glm47": "glm47",
    "minimax_m2": "minimax_m2", "minimax-m2": "minimax_m2",
    "openai": "gpt_oss", "gpt-oss": "gpt_oss", "harmony": "gpt_oss",
    "gemma4": "gemma4", "gemma-4": "gemma4", "functiongemma": "functiongemma",
    "llama3_json": "llama3_json", "llama3": "llama3_json",
    "llama4_pythonic": "llama4_pythonic", "pythonic": "llama4_pythonic", "llama4_json": "llama4_pythonic",
    "mistral": "mistral", "granite": "granite3", "granite4": "granite4",
    "phi4_mini_json": "phi4_mini", "phi4": "phi4_mini",
    "seed_oss": "seed_oss", "step3": "step3", "step3p5": "step3p5",
}  # fmt: skip


@pytest.mark.parametrize(("alias", "name"), REASONING.items(), ids=REASONING)
def test_reasoning_parsers_are_found_by_their_names_elsewhere(alias: str, name: str) -> None:
    assert registry.by_alias("reasoning", alias).name == name


@pytest.mark.parametrize(("alias", "name"), TOOLS.items(), ids=TOOLS)
def test_tool_parsers_are_found_by_their_names_elsewhere(alias: str, name: str) -> None:
    assert registry.by_alias("tools", alias).name == name


def test_a_pair_takes_its_thinking_from_the_first_and_its_calls_from_the_second() -> None:
    pair = registry.choose("nemotron_deci", "qwen3_coder")
    first, second = registry.get("nemotron_deci"), registry.get("qwen3_coder")
    assert pair.grammar == f"{first.grammar}+{second.grammar}"
    assert pair.thinking == first.thinking
    assert registry.get(pair.name) == pair


def test_a_pair_of_one_family_is_that_family() -> None:
    assert registry.choose("glm45", "glm") is registry.get("glm45")


def test_an_empty_pair_is_refused() -> None:
    with pytest.raises(NotFoundError, match="both are empty"):
        registry.choose("", "")

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from prompts.exact import dumps, loads, marked
from prompts.template import ChatTemplate, Folder, TemplateError, shipped

USER = [{"role": "user", "content": "hi"}]


def render(source: str, **arguments: Any) -> str:
    return ChatTemplate(source).render(USER, arguments=arguments)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        pytest.param("{{ x | tojson }}", '{"b": "<é>", "a": 1}', id="no html escapes, key order"),
        pytest.param("{{ x | tojson(indent=1) }}", '{\n "b": "<é>",\n "a": 1\n}', id="indent"),
        pytest.param(
            "{% for i in [1,2,3] %}{% if i == 2 %}{% break %}{% endif %}{{ i }}{% endfor %}",
            "1",
            id="break",
        ),
        pytest.param("{% generation %}a{{ x.a }}{% endgeneration %}b", "a1b", id="generation"),
        pytest.param("  {% if true %}\n  y\n  {% endif %}\n", "  y\n", id="trimmed blocks"),
        pytest.param("{{ messages[0].content }}{{ messages[0]['role'] }}", "hiuser", id="messages"),
        pytest.param("{{ messages[0].nothing is defined }}", "False", id="undefined field"),
        pytest.param("{% for k, v in x.items() %}{{ k }}{% endfor %}", "ba", id="dict methods"),
        pytest.param("{{ x.items is callable }}", "True", id="a method wins over a missing key"),
        pytest.param("{{ tools is none }}{{ add_generation_prompt }}", "TrueTrue", id="defaults"),
    ],
)
def test_environment_is_the_one_templates_are_written_for(source: str, expected: str) -> None:
    assert render(source, x={"b": "<é>", "a": 1}) == expected


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("{{ ''.__class__ }}{{ ''.__class__.__mro__ }}", id="class"),
        pytest.param("{{ messages.append(1) }}", id="mutation of a list"),
        pytest.param("{{ messages[0].update({'role': 'system'}) }}", id="mutation of a dict"),
        pytest.param("{{ '{0.__class__.__mro__}'.format(1) }}", id="format"),
        pytest.param("{{ raise_exception('not today') }}", id="its own refusal"),
        pytest.param("{{ 1 // 0 }}", id="arithmetic"),
        pytest.param("{{ nothing.at.all }}", id="undefined"),
        pytest.param("{% for x in range(999999999) %}{% endfor %}", id="endless"),
    ],
)
def test_what_a_template_may_not_do_is_a_template_error(source: str) -> None:
    with pytest.raises(TemplateError):
        render(source)


def test_refusal_keeps_the_authors_words() -> None:
    with pytest.raises(TemplateError, match="roles must alternate"):
        render("{{ raise_exception('roles must alternate') }}")


def test_template_that_does_not_parse_says_where() -> None:
    with pytest.raises(ValueError, match="line 2"):
        ChatTemplate("a\n{% if %}")


def test_clock_is_the_callers() -> None:
    template = ChatTemplate(
        "{{ strftime_now('%Y-%m-%d') }}", clock=lambda: datetime(2026, 11, 30, tzinfo=UTC)
    )
    assert template.render(USER) == "2026-11-30"


def test_folder_gives_sources_in_every_place_and_form(tmp_path: Path) -> None:
    config = {
        "chat_template": [
            {"name": "default", "template": "d"},
            {"name": "tool_use", "template": "t"},
        ],
        "bos_token": {"content": "<s>", "lstrip": False},
        "eos_token": "</s>",
        "pad_token": None,
    }
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    folder = Folder(tmp_path)
    assert folder.sources() == {"default": "d", "tool_use": "t"}
    assert folder.tokens() == {"bos_token": "<s>", "eos_token": "</s>"}
    (tmp_path / "chat_template.json").write_text('{"chat_template": "j"}')
    assert folder.sources()["default"] == "j"
    (tmp_path / "chat_template.jinja").write_text("f")
    (tmp_path / "additional_chat_templates").mkdir()
    (tmp_path / "additional_chat_templates" / "rag.jinja").write_text("r")
    assert folder.sources() == {"default": "f", "tool_use": "t", "rag": "r"}


def test_empty_folder_has_no_sources(tmp_path: Path) -> None:
    assert Folder(tmp_path).sources() == {}


@pytest.mark.parametrize("name", ["../secrets", "nothing_of_that_name", "a b", ""])
def test_shipped_templates_are_found_by_name_only(name: str) -> None:
    assert shipped(name) is None


@pytest.mark.parametrize(
    "text",
    [
        '{"b": "é🚀", "a": 1.0, "n": 12345678901234567890}',
        '{"x": 1.10, "y": [1e5, {"z": -0.0}], "w": 1E-7, "v": 0.1}',
        "[1.50]",
        "1.50",
        '{"s": "1.50 \\" \ufdd3"}',
    ],
)
def test_json_comes_out_as_it_went_in(text: str) -> None:
    assert dumps(marked(loads(text))) == text
    assert render("{{ {'k': x} | tojson }}", x=marked(loads(text))) == f'{{"k": {text}}}'


@pytest.mark.parametrize("text", ["{", '{"a" 1}', "[" * 100_000])
def test_broken_json_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 -- its words are those of json
        loads(text)

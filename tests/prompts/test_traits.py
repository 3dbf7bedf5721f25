"""Templates of every temper, and that a whole agent's conversation comes through each of them."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from families import registry
from prompts.prompter import Prompter, PromptSettings
from prompts.template import ChatTemplate
from prompts.traits import Traits, read
from tests.prompts.turns_made import FORECAST, assistant, call, result, system, turn, user
from turns.blocks import Reasoning
from turns.errors import InvalidRequestError

LOOP = "{% for m in messages %}"
END = "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
LINE = "<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n"
PLAIN = LOOP + LINE + END
NO_SYSTEM = (
    LOOP
    + "{% if m.role == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"
    + "{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('must alternate') }}{% endif %}"
    + LINE
    + END
)
HEAD_OVERWRITTEN = (
    "{% set ns = namespace(s='') %}{% for m in messages %}{% if m.role == 'system' %}{% set ns.s = m.content %}"
    "{% endif %}{% endfor %}{{ ns.s }}"
    + LOOP
    + "{% if m.role != 'system' %}"
    + LINE
    + "{% endif %}"
    + END
)
ONE_CALL = (
    "{% for t in tools or [] %}{{ t | tojson }}{% endfor %}" + LOOP + "{% if m.tool_calls %}"
    "{% if m.tool_calls | length != 1 %}{{ raise_exception('single tool-calls at once') }}{% endif %}"
    "<|im_start|>assistant\n{{ m.tool_calls[0].function | tojson }}<|im_end|>\n{% else %}"
    + LINE
    + "{% endif %}"
    + END
)
TEXT_ARGUMENTS = (
    LOOP + "{% if m.tool_calls %}<|im_start|>assistant\n{{ m.content }}{% for c in m.tool_calls %}"
    "{{ '<tool_call>' + c.function.arguments + '</tool_call>' }}{% endfor %}<|im_end|>\n{% else %}"
    + LINE
    + "{% endif %}"
    + END
)
PARTS = (
    LOOP
    + "<|im_start|>{{ m.role }}\n{% for p in m.content %}{{ p.text }}{% endfor %}<|im_end|>\n"
    + END
)
THINKING_FIELD = LOOP + "{% if m.thinking %}<think>{{ m.thinking }}</think>{% endif %}" + LINE + END


def traits(source: str) -> Traits:
    return read(ChatTemplate(source), {})


def differences(source: str) -> dict[str, Any]:
    """Where the traits are not those of the plainest template."""
    plain = traits(PLAIN)
    return {
        name: value
        for name in Traits.__struct_fields__
        if (value := getattr(traits(source), name)) != getattr(plain, name)
    }


def test_plain_template_shows_what_it_shows() -> None:
    assert traits(PLAIN) == Traits(
        tools=False,
        calls=False,
        talks=True,
        parallel=True,
        arguments="object",
        raw_arguments=False,
        reasoning="",
        parts=False,
        images=False,
        system=True,
        late_system=True,
        tool_role=True,
        alternate=False,
    )


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        pytest.param(
            NO_SYSTEM,
            {
                "talks": False,
                "parallel": False,
                "system": False,
                "late_system": False,
                "tool_role": False,
                "alternate": True,
            },
            id="no system",
        ),
        pytest.param(HEAD_OVERWRITTEN, {"late_system": False}, id="late system rewrites the head"),
        pytest.param(
            ONE_CALL,
            {"tools": True, "calls": True, "talks": False, "parallel": False},
            id="one call",
        ),
        pytest.param(
            TEXT_ARGUMENTS,
            {"calls": True, "arguments": "text", "raw_arguments": True},
            id="text arguments",
        ),
        pytest.param(PARTS, {"parts": True}, id="parts"),
        pytest.param(THINKING_FIELD, {"reasoning": "thinking"}, id="thinking"),
        pytest.param("{# reasoning_content #}" + PLAIN, {}, id="a comment is not a reading"),
    ],
)
def test_traits_are_found_by_rendering(source: str, expected: dict[str, Any]) -> None:
    assert differences(source) == expected


@pytest.mark.parametrize(
    "source",
    [PLAIN, NO_SYSTEM, HEAD_OVERWRITTEN, ONE_CALL, TEXT_ARGUMENTS, PARTS, THINKING_FIELD],
    ids=["plain", "no system", "head", "one call", "text arguments", "parts", "thinking"],
)
@pytest.mark.parametrize("name", ["keeping", "qwen3_coder"])
def test_whole_conversation_comes_through(prompter: Prompter, source: str, name: str) -> None:
    family = registry.get("qwen3_coder" if name == "qwen3_coder" else "qwen3")
    family = replace(family, replay=replace(family.replay, keep="always"))
    carried = Prompter(
        prompter.tokenizer, {"default": ChatTemplate(source)}, family, PromptSettings()
    )
    asked = turn(
        system("Sys"),
        user("Ask"),
        assistant(
            Reasoning("Why"),
            "Say",
            call('{"place": "Aa"}', id="a"),
            call('{"place": "Bb"}', id="b"),
        ),
        user(result("Rain", "a"), result("Sun", "b", is_error=True)),
        assistant("Fine"),
        system("Late"),
        user("More"),
        tools=(FORECAST,),
    )
    text = carried.render(asked)
    places = [
        text.find(word)
        for word in ("Sys", "Ask", "Why", "Say", "Aa", "Bb", "Rain", "Sun", "Fine", "Late", "More")
    ]
    assert -1 not in places
    assert places == sorted(places)
    assert '"forecast"' in text
    assert carried.tokenizer.decode(carried.prepare(asked).ids) == text


def test_refusal_names_message_and_field(prompter: Prompter) -> None:
    source = (
        LOOP
        + "{% if 'bad' in m.content %}{{ raise_exception('no bad words') }}{% endif %}"
        + LINE
        + END
    )
    strict = Prompter(
        prompter.tokenizer, {"default": ChatTemplate(source)}, prompter.family, PromptSettings()
    )
    asked = turn(user("a"), assistant("b"), user("this is bad"), assistant("c"), user("d"))
    with pytest.raises(
        InvalidRequestError, match=r"messages\.2\.content: .* no bad words"
    ) as caught:
        strict.prepare(asked)
    assert caught.value.param == "messages.2.content"
    with pytest.raises(InvalidRequestError, match="refused the messages"):
        Prompter(
            prompter.tokenizer,
            {"default": ChatTemplate("{{ messages[0].role + 1 }}")},
            prompter.family,
            PromptSettings(),
        ).prepare(turn())

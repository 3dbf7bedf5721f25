from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from msgspec.structs import replace

from families.family import Family
from prompts.doctor import Break, diagnosed, seen
from prompts.prompter import Prompter, PromptSettings
from prompts.template import ChatTemplate
from tests.prompts.models import QWEN3
from tests.prompts.played import heard, spoken
from tests.prompts.turns_made import FORECAST, assistant, call, result, system, turn, user
from turns.blocks import Block, Reasoning, Text
from turns.turn import Thinking, Tool, Turn

OTHER = Tool("other", "Does something else", {"type": "object", "properties": {}})
HEADER = "x-anthropic-billing-header: cc_version=2.1.200.{}; cc_entrypoint=cli;"
REPLY = assistant(Reasoning("thought"), "Checking.", call())


def broken(prompter: Prompter, before: Turn, after: Turn) -> Break:
    found = diagnosed(prompter, seen(prompter, before), seen(prompter, after))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("before", "after", "cause", "where"),
    [
        pytest.param(
            turn(system("You are A."), user("hi")),
            turn(system("You are B."), user("hi")),
            "changed_system",
            "system",
            id="system",
        ),
        pytest.param(
            turn(system("S\nToday's date: Nov 29, 2026\nE"), user("hi")),
            turn(system("S\nToday's date: Nov 30, 2026\nE"), user("hi")),
            "date_line",
            "system",
            id="date",
        ),
        pytest.param(
            turn(system("S"), user("Session 0a1b2c3d-1111-2222-3333-444455556666: hi")),
            turn(system("S"), user("Session 9f8e7d6c-1111-2222-3333-444455556666: hi")),
            "identifier",
            "messages.0",
            id="identifier",
        ),
        pytest.param(
            turn(system("S"), user("hi"), tools=(FORECAST, OTHER)),
            turn(system("S"), user("hi"), tools=(OTHER, FORECAST)),
            "reordered_tools",
            "tools.0",
            id="tools in another order",
        ),
        pytest.param(
            turn(system("S"), user("hi"), tools=(FORECAST,)),
            turn(system("S"), user("hi"), tools=(FORECAST, OTHER)),
            "changed_tools",
            "tools.1",
            id="one more tool",
        ),
        pytest.param(
            turn(user("hi"), tools=(FORECAST,)),
            turn(user("hi"), tools=(replace(FORECAST, description="New"),)),
            "changed_tools",
            "tools.0",
            id="another description, no system message",
        ),
        pytest.param(
            turn(user("hi"), assistant("a"), user("one")),
            turn(user("hi"), assistant("a"), user("two"), assistant("b"), user("c")),
            "edited_message",
            "messages.2",
            id="edited message",
        ),
        pytest.param(
            turn(user("hi"), assistant("a"), user("one")),
            turn(user("hi"), assistant("z"), user("one"), assistant("b"), user("c")),
            "edited_reply",
            "messages.1",
            id="edited reply",
        ),
        pytest.param(
            turn(user("hi"), REPLY, user(result())),
            turn(user("hi"), assistant(Reasoning("other"), "Checking.", call()), user(result())),
            "mutated_reasoning",
            "messages.1",
            id="mutated reasoning",
        ),
        pytest.param(
            turn(user("hi"), REPLY, user(result())),
            turn(user("hi"), assistant("Checking.", call()), user(result())),
            "lost_reasoning",
            "messages.1",
            id="lost reasoning",
        ),
        pytest.param(
            turn(user("hi"), REPLY, user(result())),
            turn(user("hi"), REPLY, user(result()), assistant("It rains."), user("thanks")),
            "dropped_reasoning",
            "messages.1",
            id="dropped by policy",
        ),
    ],
)
def test_cause_and_place_are_named(
    prompter: Prompter, before: Turn, after: Turn, cause: str, where: str
) -> None:
    found = broken(prompter, before, after)
    assert (found.cause, found.where) == (cause, where)
    assert found.before != found.after
    assert found.lost > 0


def test_break_is_where_the_tokens_part(prompter: Prompter) -> None:
    before, after = turn(system("S"), user("one two")), turn(system("S"), user("one three"))
    left, right = (prompter.prepare(asked) for asked in (before, after))
    found = broken(prompter, before, after)
    assert left.ids[: found.token] == right.ids[: found.token]
    assert left.ids[found.token] != right.ids[found.token]
    assert found.token + found.lost == left.reply_at
    assert "two" in found.before
    assert "three" in found.after


def test_billing_header_that_was_kept_is_named(folder: Callable[[Family], Path]) -> None:
    keeping = Prompter.load(
        folder(QWEN3), QWEN3, settings=PromptSettings(strip_billing_header=False)
    )
    before, after = (
        turn(system(HEADER.format(nonce), "S"), user("hi")) for nonce in ("aa1", "bb2")
    )
    assert broken(keeping, before, after).cause == "billing_header"


def test_continued_turn_has_no_break(prompter: Prompter) -> None:
    before = turn(system("S"), user("hi"), tools=(FORECAST,))
    after = turn(system("S"), user("hi"), assistant("a"), user("more"), tools=(FORECAST,))
    assert diagnosed(prompter, seen(prompter, before), seen(prompter, after)) is None
    assert diagnosed(prompter, seen(prompter, before), seen(prompter, before)) is None


def answered(
    prompter: Prompter, asked: Turn, blocks: tuple[Block, ...]
) -> tuple[list[int], dict[str, list[int]]]:
    """An odd tokenisation of an answer, and what the ledger remembers of it."""
    plan = prompter.plan(asked)
    prompt = prompter.finish(plan)
    output = spoken(prompter, prompt, blocks, Random(3))  # type: ignore[arg-type]
    reply = heard(prompter, asked, prompt, output)
    return output, prompter.entries(plan, prompt, reply, output)


def test_answer_is_part_of_what_should_be_continued(keeping: Prompter) -> None:
    blocks = (Text("Look it up in the almanac."),)
    asked = turn(user("hi"), thinking=Thinking("off"))
    output, ledger = answered(keeping, asked, blocks)
    before = seen(keeping, asked, output=output, blocks=blocks)
    after = turn(user("hi"), assistant(*blocks), user("more"), thinking=Thinking("off"))
    assert diagnosed(keeping, before, seen(keeping, after, found=ledger)) is None
    found = diagnosed(keeping, before, seen(keeping, after))
    assert found is not None
    assert found.cause == "retokenised_reply"
    assert found.where == "messages.1"


def test_another_thinking_mode_is_named_where_it_changes_the_head(prompter: Prompter) -> None:
    source = (
        "<|im_start|>system\nReasoning: {{ enable_thinking }}<|im_end|>\n"
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )
    told = Prompter(prompter.tokenizer, {"default": ChatTemplate(source)}, QWEN3, prompter.settings)
    found = broken(
        told, turn(user("hi"), thinking=Thinking("on")), turn(user("hi"), thinking=Thinking("off"))
    )
    assert found.cause == "changed_thinking"

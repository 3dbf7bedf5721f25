"""What the model reads, for each thing that clients do. Cases named after the corpus where there is one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from families.family import Family
from prompts.prompter import Prompter, PromptSettings
from tests.prompts.models import KEEPING, QWEN3
from tests.prompts.turns_made import FORECAST, assistant, call, message, result, system, turn, user
from turns.blocks import (
    Image,
    Message,
    Opaque,
    Reasoning,
    Text,
    ToolCall,
    ToolReference,
    ToolResult,
)
from turns.errors import InvalidRequestError
from turns.turn import Thinking, Tool

HEADER = "x-anthropic-billing-header: cc_version=2.1.200.aa1; cc_entrypoint=cli; cch=0a1b2;"


def test_prompt_is_the_rendered_text(prompter: Prompter) -> None:
    asked = turn(system("Be brief."), user("Weather?"), tools=(FORECAST,))
    prompt = prompter.prepare(asked)
    text = prompter.render(asked)
    assert prompter.tokenizer.decode(prompt.ids) == text
    assert text.startswith("<|im_start|>system\nBe brief.\n\n# Tools")
    assert text.endswith("<|im_start|>user\nWeather?<|im_end|>\n<|im_start|>assistant\n")
    assert text.endswith(prompt.tail)
    assert len(prompt.tail) == 256
    assert prompt.stop_ids == tuple(map(prompter.tokenizer.id_of, QWEN3.stop_tokens))


def test_rendering_is_that_of_qwen3s_own_template(qwen3: Prompter) -> None:
    text = qwen3.render(
        turn(
            system("S"),
            user("U"),
            assistant(Reasoning("r"), "Checking.", call()),
            user(result("rain")),
            tools=(FORECAST,),
        )
    )
    assert text.endswith(
        "<|im_start|>user\nU<|im_end|>\n<|im_start|>assistant\n<think>\nr\n</think>\n\nChecking.\n"
        '<tool_call>\n{"name": "forecast", "arguments": {"place": "Bergen"}}\n</tool_call><|im_end|>\n'
        "<|im_start|>user\n<tool_response>\nrain\n</tool_response><|im_end|>\n<|im_start|>assistant\n"
    )


@pytest.mark.parametrize(
    "blocks",
    [
        pytest.param((f"{HEADER}", "You are careful."), id="own block"),
        pytest.param((f"{HEADER}\nYou are careful.",), id="first line of a block"),
        pytest.param((f"{HEADER}\n\nYou are careful.",), id="followed by an empty line"),
        pytest.param(("You are careful.", HEADER), id="later block"),
        pytest.param((f"{HEADER} You are careful.",), id="on the same line"),
    ],
)
@pytest.mark.parametrize("role", ["system", "developer"])
def test_billing_header_is_stripped(prompter: Prompter, blocks: tuple[str, ...], role: str) -> None:
    plain = prompter.prepare(turn(system("You are careful."), user("hi")))
    assert prompter.prepare(turn(message(role, *blocks), user("hi"))).ids == plain.ids


def test_billing_header_alone_leaves_no_trace(prompter: Prompter) -> None:
    stripped = prompter.render(turn(system(HEADER), user("hi")))
    assert "billing" not in stripped
    assert "cch" not in stripped


def test_billing_header_in_a_users_text_is_the_users(prompter: Prompter) -> None:
    assert HEADER in prompter.render(turn(user(HEADER)))


def test_billing_header_can_be_kept(folder: Callable[[Family], Path]) -> None:
    kept = Prompter.load(folder(QWEN3), QWEN3, settings=PromptSettings(strip_billing_header=False))
    assert "cch=" in kept.render(turn(system(HEADER, "S"), user("hi")))


def test_system_message_before_the_first_reply_is_rendered_ahead(prompter: Prompter) -> None:
    late = turn(system("S"), user("task"), system("Agent types: explorer."), tools=(FORECAST,))
    early = turn(system("S\n\nAgent types: explorer."), user("task"), tools=(FORECAST,))
    assert prompter.prepare(late).ids == prompter.prepare(early).ids
    assert prompter.render(late).count("Agent types: explorer.") == 1


def test_later_system_message_stays_in_place(prompter: Prompter) -> None:
    first = turn(system("S"), user("task"))
    second = turn(system("S"), user("task"), assistant("ok"), system("reminder"), user("go on"))
    head = prompter.render(first).removesuffix("<|im_start|>assistant\n")
    text = prompter.render(second)
    assert text.startswith(head)
    assert text.index("ok") < text.index("reminder") < text.index("go on")


@pytest.mark.parametrize(
    ("left", "right"),
    [
        pytest.param(assistant("b"), assistant("b", ""), id="empty text beside text"),
        pytest.param(assistant(call()), assistant("", call()), id="empty content before calls"),
        pytest.param(
            assistant(call()), Message("assistant", (Text(""), call(), Text("\n"))), id="glue"
        ),
        pytest.param(assistant("b"), assistant(Reasoning(""), "b"), id="empty reasoning"),
        pytest.param(assistant("b"), assistant(Opaque("server_tool_use", {}), "b"), id="opaque"),
    ],
)
def test_null_empty_and_absent_are_the_same(
    prompter: Prompter, left: Message, right: Message
) -> None:
    ids = [
        prompter.prepare(turn(user("a"), reply, user("c"), tools=(FORECAST,))).ids
        for reply in (left, right)
    ]
    assert ids[0] == ids[1]


def test_reply_split_over_messages_is_one_reply(prompter: Prompter) -> None:
    whole = turn(user("a"), assistant(Reasoning("r"), "b", call()), user(result()))
    split = turn(
        user("a"),
        assistant(Reasoning("r")),
        assistant("b"),
        assistant(call()),
        message("tool", result()),
    )
    assert prompter.prepare(whole).ids == prompter.prepare(split).ids


def test_glue_newline_is_not_doubled(prompter: Prompter) -> None:
    text = prompter.render(turn(user("a"), assistant("Checking.\n", call()), user(result())))
    assert "Checking.\n<tool_call>" in text


def test_interleaved_order_is_kept(keeping: Prompter) -> None:
    text = keeping.render(
        turn(
            user("go"),
            assistant(
                Reasoning("r1"),
                call('{"place": "A"}', id="a"),
                Reasoning("r2"),
                "then",
                call('{"place": "B"}', id="b"),
                "last",
            ),
            user(result("x", "a"), result("y", "b")),
        )
    )
    assert (
        '<think>\nr1\n</think>\n\n<tool_call>\n{"name": "forecast", "arguments": {"place": "A"}}\n</tool_call>\n'
        '<think>\nr2\n</think>\n\nthen\n<tool_call>\n{"name": "forecast", "arguments": {"place": "B"}}\n</tool_call>\n'
        "last<|im_end|>"
    ) in text


def test_interleaved_reasoning_is_dropped_where_the_policy_drops_it(prompter: Prompter) -> None:
    reply = assistant(Reasoning("r1"), call(id="a"), Reasoning("r2"), call(id="b"))
    text = prompter.render(
        turn(user("go"), reply, user(result("x", "a"), result("y", "b")), user("more"))
    )
    assert "r1" not in text
    assert "r2" not in text
    assert text.count("<tool_call>") == 2


def test_plain_reply_drops_old_reasoning(prompter: Prompter, qwen3: Prompter) -> None:
    asked = turn(user("a"), assistant(Reasoning("secret"), "b"), user("c"))
    assert "secret" not in prompter.render(asked)
    assert "secret" not in qwen3.render(asked)


def test_reasoning_stays_within_a_tool_loop(prompter: Prompter, qwen3: Prompter) -> None:
    asked = turn(
        user("a"),
        assistant(Reasoning("secret"), call()),
        user(result(), "<system-reminder>be quick</system-reminder>"),
        tools=(FORECAST,),
    )
    for one in (prompter, qwen3):
        text = one.render(asked)
        assert "<think>\nsecret\n</think>" in text
        assert "rain\n\n<system-reminder>be quick" in text


def test_family_that_never_replays_has_no_reasoning(folder: Callable[[Family], Path]) -> None:
    never = msgspec.structs.replace(
        KEEPING, name="never", replay=msgspec.structs.replace(KEEPING.replay, keep="never")
    )
    text = Prompter.load(folder(never), never).render(
        turn(user("a"), assistant(Reasoning("r0"), "b"), user("c"))
    )
    assert "r0" not in text


def test_redacted_reasoning_never_enters_the_prompt(keeping: Prompter) -> None:
    reply = assistant(Reasoning("AAAA", "abc", redacted=True), call())
    assert "AAAA" not in keeping.render(turn(user("a"), reply, user(result())))


@pytest.mark.parametrize("think", ["<think>", "</think>", "<|im_end|>", "</tool_response>"])
def test_control_tokens_come_from_the_template_only(qwen3: Prompter, think: str) -> None:
    evil = Tool(
        think, think, {"properties": {think: {"description": think, "enum": [think]}, "think": {}}}
    )
    spelled, plain = (
        turn(
            system(word),
            user(f"what does {word} mean?"),
            assistant(Reasoning(word), word, call(f'{{"{word}": "{word}"}}', name=word, id=word)),
            user(result(word, word)),
            tools=(
                msgspec.structs.replace(evil, name=word, description=word, parameters=parameters),
            ),
        )
        for word, parameters in ((think, evil.parameters), ("word", {"properties": {"p": {}}}))
    )
    special = qwen3.tokenizer.special
    controls = [
        [special[number] for number in qwen3.prepare(asked).ids if number in special]
        for asked in (spelled, plain)
    ]
    assert controls[0] == controls[1]
    assert qwen3.tokenizer.decode(qwen3.prepare(spelled).ids) == qwen3.render(spelled)


def test_arguments_are_written_as_the_model_writes_them(qwen3: Prompter) -> None:
    reply = assistant(call('{"b":"é🚀","a":1.0,"n":12345678901234567890,"x":1.50}', name="save"))
    assert '{"b": "é🚀", "a": 1.0, "n": 12345678901234567890, "x": 1.50}' in qwen3.render(
        turn(user("go"), reply, user(result()))
    )


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        pytest.param('{"place": ', '"arguments": {"place": }', id="cut"),
        pytest.param("", '"arguments": {}}', id="empty"),
        pytest.param("[1]", '"arguments": [1]}', id="not an object"),
    ],
)
def test_malformed_arguments_are_shown_as_they_are(
    qwen3: Prompter, arguments: str, shown: str
) -> None:
    assert shown in qwen3.render(turn(user("a"), assistant(call(arguments)), user(result("bad"))))


def test_failed_call_is_marked(prompter: Prompter) -> None:
    failed, fine = (
        prompter.render(
            turn(user("go"), assistant(call()), user(result("timeout", is_error=error)))
        )
        for error in (True, False)
    )
    assert "Error: timeout" in failed
    assert "Error" not in fine


def test_results_are_tool_messages_in_their_order(prompter: Prompter) -> None:
    text = prompter.render(
        turn(
            user("go"),
            assistant(call(id="a"), call(id="b")),
            user(result("one", "a"), result("two", "b"), "and now?"),
        )
    )
    assert text.endswith(
        "<|im_start|>user\n<tool_response>\none\n</tool_response>\n<tool_response>\ntwo\n</tool_response><|im_end|>\n"
        "<|im_start|>user\nand now?<|im_end|>\n<|im_start|>assistant\n"
    )


def test_custom_tool_is_a_function_of_one_string(prompter: Prompter) -> None:
    patch = Tool(
        "apply_patch",
        "edit",
        kind="custom",
        format={"type": "grammar", "definition": "start: /.+/s"},
    )
    text = prompter.render(
        turn(
            user("edit"),
            assistant(ToolCall("c1", "apply_patch", "*** Begin Patch\n", kind="custom")),
            message("tool", result("Done")),
            user("next"),
            tools=(patch,),
        )
    )
    assert '"required": ["input"]' in text
    assert "start: /.+/s" in text
    assert '{"input": "*** Begin Patch\\n"}' in text
    assert text.index("*** Begin Patch") < text.index("Done") < text.index("next")


def test_deferred_tools_are_shown_where_they_are_referenced(prompter: Prompter) -> None:
    hidden = Tool(
        "WebFetch", "fetches", {"type": "object", "properties": {"url": {}}}, deferred=True
    )
    place = Tool("DeferredToolPlaceholder", deferred=True)
    head = (system("S"), user("go"), assistant(call("{}", "ToolSearch")))
    before = prompter.render(turn(*head, user(result()), tools=(place, FORECAST)))
    found = ToolResult("c1", (ToolReference("WebFetch"), ToolReference("Gone")))
    after = prompter.render(turn(*head, user(found), tools=(place, FORECAST, hidden)))
    shared = before.index("<tool_response>")
    assert after[:shared] == before[:shared]
    assert "DeferredToolPlaceholder" not in after
    assert '"name": "WebFetch"' in after[shared:]
    assert '"url": {}' in after[shared:]
    assert "Gone is not available" in after


def test_schema_keys_keep_their_order(prompter: Prompter) -> None:
    tool = Tool("f", "d", {"zeta": 1, "alpha": {"y": 1, "x": 2}})
    assert '{"zeta": 1, "alpha": {"y": 1, "x": 2}}' in prompter.render(
        turn(user("a"), tools=(tool,))
    )


@pytest.mark.parametrize(
    ("thinking", "tools", "end"),
    [
        pytest.param(Thinking("off"), (FORECAST,), "<think>\n\n</think>\n\n", id="off is off"),
        pytest.param(Thinking("on"), (), "assistant\n", id="on"),
        pytest.param(Thinking(effort="none"), (), "<think>\n\n</think>\n\n", id="no effort"),
        pytest.param(Thinking(), (), "assistant\n", id="the family's habit"),
    ],
)
def test_thinking_reaches_the_template(
    qwen3: Prompter, thinking: Thinking, tools: tuple[Tool, ...], end: str
) -> None:
    assert qwen3.prepare(turn(user("a"), thinking=thinking, tools=tools)).tail.endswith(end)


def test_assistant_prefill_is_continued(qwen3: Prompter) -> None:
    prompt = qwen3.prepare(turn(user("a"), assistant("The answer: ")))
    assert prompt.tail.endswith("<|im_start|>assistant\n<think>\n\n</think>\n\nThe answer: ")


def test_call_without_result_is_not_a_prefill(qwen3: Prompter) -> None:
    assert qwen3.prepare(turn(user("a"), assistant(call()))).tail.endswith(
        "<|im_start|>assistant\n"
    )


def test_image_is_refused_by_a_family_that_does_not_see(prompter: Prompter) -> None:
    with pytest.raises(InvalidRequestError, match="does not see images") as caught:
        prompter.prepare(turn(user("look"), user("x", Image("image/png", "AAAA"))))
    assert caught.value.param == "messages.1.content.1"


@pytest.mark.parametrize("name", ["messages", "tools", "chat_template", "add_generation_prompt"])
def test_template_arguments_cannot_stand_in_for_the_conversation(
    prompter: Prompter, name: str
) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        prompter.prepare(turn(user("a"), template_kwargs={name: "x"}))
    assert caught.value.param == f"chat_template_kwargs.{name}"


def test_nesting_without_end_is_refused(prompter: Prompter) -> None:
    schema: dict[str, object] = {}
    for _ in range(5000):
        schema = {"properties": schema}
    with pytest.raises(InvalidRequestError, match="nested too deeply"):
        prompter.prepare(turn(user("a"), tools=(Tool("f", parameters=schema),)))


def test_deep_arguments_are_shown_or_refused(prompter: Prompter) -> None:
    deep = '{"a":' * 3000 + "1" + "}" * 3000
    asked = turn(user("a"), assistant(call(deep)), user(result()))
    assert deep in prompter.render(asked)
    medium = '{"a":' * 600 + "1" + "}" * 600
    with pytest.raises(InvalidRequestError) as caught:
        prompter.prepare(turn(user("a"), assistant(call(medium)), user(result())))
    assert caught.value.param in (None, "messages.1.tool_calls")

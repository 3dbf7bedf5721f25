"""The corpus's properties of prompts: what the engine was given, as text and as token ids."""

from __future__ import annotations

import json
import re

import pytest

from tests.serving.corpus.judged import Judged, prop
from tests.serving.corpus.steps import Step, send


@prop
def prompt_contains(this: Judged) -> None:
    assert this.fields["value"] in this.step.text


@prop
def prompt_not_contains(this: Judged) -> None:
    steps = [this.step] if "turn" in this.fields else this.runs
    assert all(step.prompt for step in steps)
    assert not [step for step in steps if this.fields["value"] in step.text]


@prop
def prompt_contains_once(this: Judged) -> None:
    assert this.step.text.count(this.fields["value"]) == 1


@prop
def prompt_contains_in_order(this: Judged) -> None:
    at = 0
    for value in this.fields["value"]:
        at = this.step.text.index(value, at) + len(value)


@prop
def prompts_equal(this: Judged) -> None:
    first, second = this.runs
    assert first.prompt
    if this.fields.get("strength") == "desired" and first.prompt != second.prompt:
        pytest.skip("desired, not required: the order of keys is the client's")
    assert first.prompt == second.prompt


@prop
def prompt_a_ends_with(this: Judged) -> None:
    assert this.runs[0].text.endswith(this.fields["value"])


@prop
def prompt_b_extends_history_of_a(this: Judged) -> None:
    assert this.fields["allow_generation_prompt_tail"]
    first, second = this.runs
    history = first.prompt[: _reply_at(this, first)]
    assert history
    assert second.prompt[: len(history)] == history


def _reply_at(this: Judged, step: Step) -> int:
    """Where the header of the reply begins: the last `<|im_start|>` of the prompt."""
    start = this.server.ingress.models[0].folder.tokenizer.id_of("<|im_start|>")
    return max(at for at, number in enumerate(step.prompt) if number == start)


@prop
def prompt_contains_as_reasoning(this: Judged) -> None:
    text = this.case["request"]["messages"][1]["content"][0]["thinking"]
    assert re.search(rf"<think>\s*{re.escape(text)}\s*</think>", this.step.text)


@prop
async def prompt_is_extension_of_turn1_plus_output(this: Judged) -> None:
    """The history's own assistant turn, said by the engine: its tokens come back as they were."""
    request = this.case["request"]
    user, assistant, *_ = request["messages"]
    thought, called = assistant["content"]
    call = {"tool": called["name"], "arguments": called["input"]}
    this.server.says({"think": thought["thinking"]}, {"call": call})
    first = await send(this.server, "messages", request | {"messages": [user]})
    assert _prefix(this, first, this.step)


@prop
def token_prefix(this: Judged) -> None:
    """Turn 1's prompt and output stand at the head of turn 2's prompt, its stop token aside."""
    steps = this.runs
    assert len(steps) % 2 == 0
    for first, second in zip(steps[::2], steps[1::2], strict=True):
        assert _prefix(this, first, second)
    seconds = {tuple(step.prompt) for step in steps[1::2]}
    assert len(seconds) == 1  # one conversation, whatever the API


def _prefix(this: Judged, first: Step, second: Step) -> bool:
    stops = _stops(this)
    output = first.output[:-1] if first.output[-1] in stops else first.output
    whole = first.prompt + output
    return bool(output) and second.prompt[: len(whole)] == whole


def _stops(this: Judged) -> set[int]:
    folder = this.server.ingress.models[0].folder
    found = (folder.tokenizer.id_of(name) for name in folder.family.stop_tokens)
    return {number for number in found if number is not None}


@prop
async def control_tokens_only_from_template(this: Judged) -> None:
    """The same request with nothing in it that spells a control token has the same ones."""
    step, tokenizer = this.step, this.server.ingress.models[0].folder.tokenizer
    plain = json.dumps(step.body)
    for spelled in tokenizer.special.values():
        plain = plain.replace(json.dumps(spelled)[1:-1], "word")
    assert plain != json.dumps(step.body)
    other = await send(this.server, step.api, json.loads(plain))
    control = set(tokenizer.special)
    assert [i for i in step.prompt if i in control] == [i for i in other.prompt if i in control]


@prop
async def prompt_marks_error(this: Judged) -> None:
    body = json.loads(json.dumps(this.step.body).replace('"is_error": true', '"is_error": false'))
    other = await send(this.server, "messages", body)
    assert other.text != this.step.text
    assert "error" in this.step.text.lower().replace(other.text.lower(), "")


@prop
def template_ok_with_system_not_first(this: Judged) -> None:
    assert this.step.status == 200
    assert this.step.prompt


@prop
def prompt_not_contains_reasoning_of_turn(this: Judged) -> None:
    assert this.fields["value"] == 1
    assert this.runs
    assert not [step for step in this.runs if "OLD-REASONING" in step.text]


@prop
def template_decides(this: Judged) -> None:
    """Reasoning that the template drops leaves nothing behind, not even an empty block."""
    for with_it, without in zip(this.runs[::2], this.runs[1::2], strict=True):
        assert with_it.prompt == without.prompt


@prop
async def same_bytes_same_prompt(this: Judged) -> None:
    first = this.runs[0]
    assert (await send(this.server, first.api, first.body)).prompt == first.prompt


@prop
def both_input_spellings_render_alike(this: Judged) -> None:
    _, first, second = this.runs
    assert first.prompt == second.prompt
    assert re.search(r"<think>\s*r\s*</think>", first.text)


@prop
def content_null_equals_absent_equals_empty_in_prompt(this: Judged) -> None:
    spelled = {}
    for step in this.runs:
        said = step.body["messages"][1]
        if said.get("tool_calls") and isinstance(step.body["messages"][-1]["content"], str):
            spelled[repr(said.get("content", "absent"))] = step.prompt
    assert len(spelled) == 3
    assert len({tuple(prompt) for prompt in spelled.values()}) == 1


@prop
def tool_rendered_to_model(this: Judged) -> None:
    (tool,) = this.step.body["tools"]
    assert tool["name"] in this.step.text
    assert tool["format"]["definition"] in this.step.text.replace("\\n", "\n")


@prop
async def namespace_members_callable(this: Judged) -> None:
    body = this.step.body
    (space,) = [tool for tool in body["tools"] if tool["type"] == "namespace"]
    member = space["tools"][0]["name"]
    this.server.says({"call": {"tool": f"{space['name']}__{member}", "arguments": {}}})
    made = await send(this.server, "responses", body)
    (call,) = [item for item in made.whole["output"] if item["type"] == "function_call"]
    assert (call["namespace"], call["name"]) == (space["name"], member)

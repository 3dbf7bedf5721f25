"""The corpus's properties as the server shows them: each asserts what its name says, literally.

Those that a stream or a whole answer shows by itself are those of `tests.protocols`; here are the
ones that need the engine's prompt, HTTP, the SDKs, or what happened to a turn.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from msgspec import Struct

from tests.protocols import clients, corpus_properties
from tests.serving.corpus import lifecycle
from tests.serving.corpus.cases import Case
from tests.serving.corpus.players import Played
from tests.serving.corpus.sdk_oracle import SDKS
from tests.serving.corpus.steps import Step, send
from tests.serving.server import Server


class Judged(Struct):
    """A case as it was played, and the property that is asserted of it."""

    case: Case
    played: Played
    fields: dict[str, Any]
    server: Server

    @property
    def runs(self) -> list[Step]:
        return self.played.steps

    @property
    def step(self) -> Step:
        """The step that the property speaks of: the one it names, else the last."""
        return self.runs[self.fields.get("turn", len(self.runs)) - 1]


Check = Callable[[Any], Awaitable[None] | None]
PROPERTIES: dict[str, Check] = dict(corpus_properties.PROPERTIES)


def prop(check: Check) -> Check:
    PROPERTIES[check.__name__] = check
    return check


async def judge(this: Judged) -> None:
    """Assert the property. One that nobody knows fails."""
    name = this.fields["p"]
    assert name in PROPERTIES, f"nobody knows how to judge {name!r}"
    found = PROPERTIES[name](this)
    if inspect.isawaitable(found):
        await found


# --- HTTP


@prop
def http_status(this: Judged) -> None:
    expected = this.fields.get("in") or [this.fields["eq"]]
    answers = [fact["answer"].status_code for fact in this.played.facts if "answer" in fact]
    seen = [step.status for step in this.runs] + answers
    assert seen
    assert set(seen) <= set(expected), seen


@prop
def statuses(this: Judged) -> None:
    assert this.played.statuses == this.fields["eq"]


@prop
def error_code(this: Judged) -> None:
    assert [step.whole["error"]["code"] for step in this.runs] == [this.fields["eq"]]


@prop
def header(this: Judged) -> None:
    for fact in this.played.facts:
        assert fact["answer"].headers[this.fields["name"]]


@prop
def anthropic_error_type(this: Judged) -> None:
    said = [f["answer"].json() for f in this.played.facts if f["api"] == "messages"]
    assert said
    assert {body["error"]["type"] for body in said} <= set(this.fields["in"])


@prop
def connection_closed(this: Judged) -> None:
    assert all(step.ended for step in this.runs)


@prop
def one_of(this: Judged) -> None:
    def holds(option: dict[str, Any], step: Step) -> bool:
        if step.status != option["http_status"]:
            return False
        if "mentions" in option and option["mentions"] not in json.dumps(step.whole):
            return False
        return option.get("prompt_contains", "") in step.text

    for step in this.runs:
        assert any(holds(option, step) for option in this.fields["options"])


@prop
def same_as_nonstream(this: Judged) -> None:
    """The ids of calls aside: the two answers are two turns."""
    for step in this.runs:
        folded = clients.messages(step.stream)
        for name in this.fields["fields"]:
            assert _nameless(folded[name]) == _nameless(step.whole[name])


def _nameless(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    return [{name: part for name, part in block.items() if name != "id"} for block in value]


# --- counts and usage


@prop
def count_equals_message_start_input(this: Judged) -> None:
    (start,) = [data for _, data in this.runs[0].stream if data["type"] == "message_start"]
    usage = start["message"]["usage"]
    names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    assert sum(usage.get(name) or 0 for name in names) == this.played.counted


@prop
def count_equals_engine_prompt_len(this: Judged) -> None:
    assert this.played.counted == len(this.runs[0].prompt)


@prop
async def event_json_equal(this: Judged) -> None:
    """`a` is a field of an event, `b` what the counter says of the same body."""
    (kind, path), (counter, field) = this.fields["a"], this.fields["b"]
    assert counter == "count_tokens"
    body = {name: value for name, value in this.runs[0].body.items() if name != "stream"}
    answer = await this.server.http.post("/v1/messages/count_tokens", json=body)
    (event,) = [data for _, data in this.runs[0].stream if data["type"] == kind]
    assert corpus_properties.at(event, path) == answer.json()[field]


# --- prompts


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


@prop
def tool_calls_at_most(this: Judged) -> None:
    for step in this.runs:
        whole = step.whole["choices"][0]["message"]["tool_calls"]
        deltas = corpus_properties.call_deltas(step)
        assert len(whole) <= this.fields["value"]
        assert len({call["index"] for call in deltas}) <= this.fields["value"]
        assert step.whole["choices"][0]["finish_reason"] == "tool_calls"


# --- the official SDKs, against the running server


@prop
async def sdk_oracle(this: Judged) -> None:
    for step in this.runs:
        body = {name: value for name, value in step.body.items() if name != "stream"}
        arguments = await SDKS[this.fields["sdk"]](this.server.url, body)
        if "arguments" in this.fields:
            assert arguments == this.fields["arguments"]


@prop
def client_gets_error_within_ms(this: Judged) -> None:
    assert len(this.played.facts) == 3
    for fact in this.played.facts:
        assert lifecycle.last_error(fact)["message"]
        assert fact["error_after_ms"] < this.fields["value"]


@prop
def never_hangs(this: Judged) -> None:
    assert this.played.facts  # the streams came to their end, or there would be none


@prop
def engine_aborted_within_ms(this: Judged) -> None:
    assert len(this.played.facts) == 6
    assert max(fact["aborted_after_ms"] for fact in this.played.facts) < this.fields["value"]


@prop
def rss_growth_below_mb(this: Judged) -> None:
    (fact,) = this.played.facts
    assert fact["grown"] < this.fields["value"] * 2**20, fact["grown"] / 2**20


@prop
def other_streams_unaffected(this: Judged) -> None:
    (fact,) = this.played.facts
    assert fact["others"]
    assert set(fact["others"]) == {"still served"}

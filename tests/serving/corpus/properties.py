"""The corpus's properties as the server shows them: each asserts what its name says, literally.

Those that a stream or a whole answer shows by itself are those of `tests.protocols`, those of prompts
are in `prompt_properties`; here are the ones that need HTTP, the SDKs, or what happened to a turn.
"""

from __future__ import annotations

import json
from typing import Any

from tests.protocols import clients, corpus_properties
from tests.serving.corpus import lifecycle
from tests.serving.corpus.judged import Judged, prop
from tests.serving.corpus.sdk_oracle import SDKS
from tests.serving.corpus.steps import Step


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

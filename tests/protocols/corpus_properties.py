"""The properties of the corpus that can be judged without an engine and a prompt, one function each.

Each asserts its property literally.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from tests.protocols import apis, clients
from tests.protocols.corpus_runs import PROMPT_TOKENS, Case, Run


class Judged(Struct):
    """A case, its runs, and the fields of the property that is asserted of them."""

    case: Case
    runs: list[Run]
    fields: dict[str, Any]


Property = Callable[[Judged], None]
PROPERTIES: dict[str, Property] = {}
MARKUP = re.compile(r"<tool_call>|</tool_call>|<function=|<parameter=|</think>|<think>")
STEP = re.compile(r"^\(?(?P<type>[\w.]+)(\[(?P<index>\d+)\])?(:(?P<kind>\w+))?\)?(?P<many>[+*?]?)$")


def prop(check: Property) -> Property:
    PROPERTIES[check.__name__] = check
    return check


def final_of(run: Run) -> dict[str, Any]:
    """A whole answer in one shape for all APIs: content types, calls, stop reason, texts."""
    if run.api == "messages":
        content = run.whole["content"]
        return {
            "content_types": [block["type"] for block in content],
            "inputs": [block["input"] for block in content if block["type"] == "tool_use"],
            "stop_reason": run.whole["stop_reason"],
            "text": "".join(block.get("text", "") for block in content),
            "reasoning": "".join(block.get("thinking", "") for block in content),
        }
    if run.api == "chat":
        message = run.whole["choices"][0]["message"]
        calls = message.get("tool_calls") or []
        return {
            "inputs": [json.loads(call["function"]["arguments"]) for call in calls],
            "names": [call["function"]["name"] for call in calls],
            "text": message["content"],
            "reasoning": message.get("reasoning_content") or "",
        }
    items = run.whole["output"]
    return {"inputs": [json.loads(i["arguments"]) for i in items if i["type"] == "function_call"]}


@prop
def http_status(this: Judged) -> None:
    assert this.fields["eq"] == 200
    assert this.runs  # each of them was decoded, run and answered


@prop
def final(this: Judged) -> None:
    for run in this.runs:
        got = final_of(run)
        for name, expected in this.fields.items():
            if name == "input":
                assert got["inputs"] == [expected]
            elif name == "text" and isinstance(expected, str):
                assert got["text"] == expected
            elif name != "p":
                assert got[name] == expected


@prop
def final_a(this: Judged) -> None:
    final(Judged(this.case, this.runs[:1], this.fields))


@prop
def final_each(this: Judged) -> None:
    assert [run.whole["stop_reason"] for run in this.runs] == this.fields["stop_reason"]


@prop
def content(this: Judged) -> None:
    for run in this.runs:
        assert run.whole["content"] in this.fields["one_of"]


@prop
def sdk_oracle(this: Judged) -> None:
    """The strict checker stands in for the SDKs, which `test_sdks.py` feeds with every stream."""
    extra = ("tool_call_dispatch", "reasoning_dispatch")
    for run in this.runs:
        assert apis.problems(run.api, run.raw, extra) == []


def at(event: Any, path: str) -> Any:
    for step in path.split("."):
        event = event[step]
    return event


@prop
def event_json(this: Judged) -> None:
    (event,) = [data for _, data in this.runs[0].stream if data["type"] == this.fields["type"]]
    value = at(event, this.fields["path"])
    assert (
        value == this.fields["value"] if this.fields["op"] == "==" else value > this.fields["value"]
    )


@prop
def last_event(this: Judged) -> None:
    last = this.runs[0].stream[-1][1]
    assert last["type"] == this.fields["type"]
    if "error_type" in this.fields:
        assert last["error"]["type"] in this.fields["error_type"].removeprefix("$in:").split(",")


@prop
def no_event(this: Judged) -> None:
    assert this.fields["type"] not in this.runs[0].kinds()


@prop
def events_include(this: Judged) -> None:
    assert set(this.fields["types"]) <= set(this.runs[0].kinds())


@prop
def open_blocks_closed(this: Judged) -> None:
    kinds = this.runs[0].kinds()
    assert kinds.count("content_block_start") == kinds.count("content_block_stop")


@prop
def no_markup(this: Judged) -> None:
    assert MARKUP.search(this.runs[0].raw.decode()) is None


@prop
def same_as_nonstream(this: Judged) -> None:
    folded = clients.messages(this.runs[0].stream)
    assert all(folded[name] == this.runs[0].whole[name] for name in this.fields["fields"])


def tokens_of(run: Run) -> list[str]:
    """A stream's events as the corpus spells them: `type[index]:kind`."""
    found = []
    for _, data in run.stream:
        index = data.get("index", data.get("output_index"))
        inner = data.get("content_block") or data.get("item") or data.get("delta") or {}
        kind = inner.get("type", "") if isinstance(inner, dict) else ""
        found.append(f"{data['type']}|{'' if index is None else index}|{kind}")
    return found


@prop
def sse_sequence(this: Judged) -> None:
    """The expected types as one regular expression over the stream's types."""
    pattern = ""
    for step in this.fields["types"]:
        if step == "...":
            pattern += r"(?:[^\n]*\n)*?"
            continue
        inner, many = (step[1:-2], "*") if step.startswith("(") else (step, "")
        read = STEP.match(inner)
        assert read is not None, step
        index = read["index"] or r"\d*"
        kind = read["kind"] or r"\w*"
        line = rf"(?:{re.escape(read['type'])}\|{index}\|{kind}\n)"
        pattern += line + (many or read["many"])
    stream = "".join(f"{token}\n" for token in tokens_of(this.runs[0]))
    assert re.fullmatch(pattern, stream), stream


@prop
def usage_sum(this: Judged) -> None:
    for usage in usages(this.runs[0]):
        assert (
            sum(usage[name] for name in this.fields["fields"])
            == this.case["engine_output"][this.fields["eq"]]
        )


@prop
def usage(this: Judged) -> None:
    last = usages(this.runs[0])[-1]
    assert all(last[name] == value for name, value in this.fields.items() if name != "p")


def usages(run: Run) -> list[dict[str, int]]:
    found = [data.get("usage") or data.get("message", {}).get("usage") for _, data in run.stream]
    return [usage for usage in found if usage]


@prop
def event_json_equal(this: Judged) -> None:
    (start,) = [data for _, data in this.runs[0].stream if data["type"] == this.fields["a"][0]]
    assert (
        at(start, this.fields["a"][1]) == PROMPT_TOKENS
    )  # what the counter would say of this prompt


@prop
def sequence_number_contiguous_from(this: Judged) -> None:
    numbers = [data["sequence_number"] for _, data in this.runs[0].stream]
    assert numbers == list(range(this.fields["value"], this.fields["value"] + len(numbers)))


@prop
def output_index_unique_per_item(this: Judged) -> None:
    events = [
        data for _, data in this.runs[0].stream if data["type"] == "response.output_item.added"
    ]
    assert [event["output_index"] for event in events] == list(range(len(events)))
    assert len({event["item"]["id"] for event in events}) == len(events)


@prop
def function_calls(this: Judged) -> None:
    assert final_of(this.runs[0])["inputs"] == this.fields["eq"]


@prop
def function_call_arguments(this: Judged) -> None:
    assert final_of(this.runs[0])["inputs"] == [this.fields["eq"]]


@prop
def output_item(this: Judged) -> None:
    expected = {name: value for name, value in this.fields.items() if name != "p"}
    assert any(expected.items() <= item.items() for item in this.runs[0].whole["output"])


@prop
def one_of(this: Judged) -> None:
    options = [option for option in this.fields["options"] if option.get("http_status") == 200]
    kept = json.dumps([repr(message) for message in this.runs[0].turn.messages])
    assert all(option.get("prompt_contains", "") in kept for option in options)
    assert options


@prop
def namespace_members_callable(this: Judged) -> None:
    turn = this.runs[0].turn
    assert "mcp__files__read" in [tool.name for tool in turn.tools]
    assert turn.echo["shapes"]["mcp__files__read"]["namespace"] == "mcp__files"


def chunks(run: Run) -> list[dict[str, Any]]:
    return [data for name, data in run.stream if isinstance(data, dict) and name is None]


def call_deltas(run: Run) -> list[dict[str, Any]]:
    choices = [choice for chunk in chunks(run) for choice in chunk["choices"]]
    return [call for choice in choices for call in choice["delta"].get("tool_calls", ())]


@prop
def first_delta_has(this: Judged) -> None:
    first = call_deltas(this.runs[0])[0]
    assert all(at(first, path) is not None for path in this.fields["fields"])


@prop
def later_deltas_do_not_repeat_name(this: Judged) -> None:
    later = call_deltas(this.runs[0])[1:]
    assert later
    assert not [call for call in later if "name" in call["function"]]


@prop
def id_stable(this: Judged) -> None:
    assert len({call["id"] for call in call_deltas(this.runs[0]) if "id" in call}) == 1


@prop
def arguments_never_null(this: Judged) -> None:
    deltas = call_deltas(this.runs[0])
    assert all(isinstance(call["function"]["arguments"], str) for call in deltas)


@prop
def no_duplicate_index_in_chunk(this: Judged) -> None:
    for chunk in chunks(this.runs[0]):
        for choice in chunk["choices"]:
            indexes = [call["index"] for call in choice["delta"].get("tool_calls", ())]
            assert len(set(indexes)) == len(indexes)


@prop
def last_choice_finish_reason(this: Judged) -> None:
    choices = [choice for chunk in chunks(this.runs[0]) for choice in chunk["choices"]]
    assert choices[-1]["finish_reason"] == this.fields["eq"]


@prop
def last_json_chunk(this: Judged) -> None:
    last = chunks(this.runs[0])[-1]
    assert last["choices"] == this.fields["choices"]
    assert ("usage" in last) == this.fields["usage_present"]


@prop
def usage_null_or_absent_before(this: Judged) -> None:
    assert not [chunk for chunk in chunks(this.runs[0])[:-1] if chunk.get("usage")]


@prop
def ends_with_done(this: Judged) -> None:
    assert this.runs[0].raw.endswith(b"data: [DONE]\n\n")


@prop
def tool_calls_names(this: Judged) -> None:
    assert final_of(this.runs[0])["names"] == this.fields["eq"]


@prop
def reasoning_empty(this: Judged) -> None:
    assert final_of(this.runs[0])["reasoning"] == ""


def dispatched(run: Run) -> list[tuple[int, dict[str, Any]]]:
    found = enumerate(run.stream)
    return [(at, data) for at, (name, data) in found if name == "tool_call_dispatch"]


@prop
def dispatch_events(this: Judged) -> None:
    assert len(dispatched(this.runs[0])) == this.fields["eq"]


@prop
def dispatch_order(this: Judged) -> None:
    said = [data["tool_call"]["function"]["arguments"] for _, data in dispatched(this.runs[0])]
    assert [json.loads(arguments)["place"] for arguments in said] == this.fields["eq"]


@prop
def dispatch_1_before_delta_of_call_2(this: Judged) -> None:
    first, _ = dispatched(this.runs[0])[0]
    before = this.runs[0].stream[:first]
    assert '"index": 1, ' not in json.dumps([data for _, data in before])


@prop
def no_nonstandard_events(this: Judged) -> None:
    assert not [name for name, _ in this.runs[0].stream if name is not None]
    assert b"\n: " not in b"\n" + this.runs[0].raw


@prop
def delta_field(this: Judged) -> None:
    choices = [choice for chunk in chunks(this.runs[0]) for choice in chunk["choices"]]
    assert any(this.fields["name"] in choice["delta"] for choice in choices)


@prop
def no_delta_contains(this: Judged) -> None:
    assert this.fields["value"] not in this.runs[0].raw.decode()

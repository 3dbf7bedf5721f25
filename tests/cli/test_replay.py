from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from sessions.memory_store import MemoryStore
from tests.serving.keyed import asking
from tests.serving.server import Server, serving, settings

APIS = ["/v1/messages", "/v1/chat/completions", "/v1/responses"]
FUNCTION = {"name": "weather", "parameters": {"type": "object"}}
TOOLS: dict[str, list[dict[str, Any]]] = {
    "/v1/messages": [{"name": "weather", "input_schema": {"type": "object"}}],
    "/v1/chat/completions": [{"type": "function", "function": FUNCTION}],
    "/v1/responses": [{"type": "function"} | FUNCTION],
}
CALL = {"call": {"tool": "weather", "arguments": {}}}


async def recorded(folder: Path) -> Path:
    """A server's recording of turns on every API, streamed and whole, one going on from another."""
    async with serving(settings(observe={"turns_folder": str(folder)})) as server:
        server.says({"text": "Hello."}, CALL)
        for api in APIS:
            for stream in (False, True):
                body = asking(api, stream=stream, tools=TOOLS[api])
                answer = await server.http.post(api, json=body)
                assert answer.status_code == 200, answer.text
        first = await server.http.post("/v1/responses", json=asking("/v1/responses", store=True))
        on = asking("/v1/responses", previous_response_id=first.json()["id"])
        assert (await server.http.post("/v1/responses", json=on)).status_code == 200
        await asyncio.to_thread(server.outside.traces.settled)
    return next(iter(folder.glob("turns-*.jsonl")))  # noqa: ASYNC240 - the only one


async def test_turns_are_recorded_replayed_and_compared(asked: Any, tmp_path: Path) -> None:
    file = await recorded(tmp_path / "turns")
    assert file.stat().st_mode & 0o077 == 0
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert len(lines) == 8
    assert {line["path"] for line in lines} == {*APIS}
    assert all(line["body"]["model"] == "lab-model" and line["output"] for line in lines)
    assert lines[0]["blocks"][1] == {"kind": "call", "size": 2, "tool": "weather"}
    async with serving() as server:
        server.says({"text": "Hi."}, CALL)
        same = await asked("replay", str(file), "--base-url", server.url)
        assert "error" not in same, same
        assert (same["asked"], same["failed"], same["of_another_shape"]) == (8, 0, 0)
        assert same["ttft"]["now"]["p50"] > 0
        assert same["output_tokens"]["now"] > 0
        server.says({"text": "No call."})
        other = await asked("replay", str(file), "--base-url", server.url, "--most", "6")
        assert other["of_another_shape"] == 6
        unknown = await asked("replay", str(file), "--url", server.url, "--model", "none")
        assert unknown["failed"] == 8
        assert "does not exist" in unknown["turns"][0]["error"]


async def asked_of_all(server: Server, folder: Path, bodies: list[tuple[str, Any]]) -> Path:
    """Turns asked of a server, and a copy of what it wrote of them."""
    for api, body in bodies:
        answer = await server.http.post(api, json=body)
        assert answer.status_code == 200, answer.text
    await asyncio.to_thread(server.outside.traces.settled)
    (file,) = folder.glob("turns-*.jsonl")  # noqa: ASYNC240 - the only one
    copy = folder / "copy.jsonl"
    copy.write_bytes(file.read_bytes())
    return copy


def on_every_api(**fields: Any) -> list[tuple[str, Any]]:
    both = (False, True)
    return [
        (api, asking(api, stream=on, tools=TOOLS[api], **fields)) for api in APIS for on in both
    ]


SHELL = {"call": {"tool": "local_shell", "arguments": {"command": ["ls"]}}}
MANY = {"call": {"tool": "lab__weather", "arguments": {}}}
IN_A_NAMESPACE = [{"type": "namespace", "name": "lab", "tools": TOOLS["/v1/responses"]}]
CHAT, RESPONSES = "/v1/chat/completions", "/v1/responses"


@pytest.mark.parametrize(
    ("says", "rule", "bodies", "stops"),
    [
        pytest.param([{"text": "Hello."}], {}, on_every_api(), {"end"}, id="end"),
        pytest.param([CALL], {}, on_every_api(), {"tool_use"}, id="call"),
        pytest.param(
            [{"text": "Hello."}], {"finish": "length"}, on_every_api(), {"length"}, id="length"
        ),
        pytest.param(
            [{"raw": '<tool_call>{"name": "weather", "arguments": {"city": "Par'}],
            {"finish": "length"},
            on_every_api(),
            {"length"},
            id="in the middle of a call",
        ),
        pytest.param(
            [{"raw": '<tool_call>{"name": "weather", "arguments": {"city": "Par'}],
            {},
            on_every_api(),
            {"end"},
            id="a call that is malformed",
        ),
        pytest.param(
            [{"text": "One. Two."}],
            {},
            [
                ("/v1/messages", asking("/v1/messages", stop_sequences=["Two"])),
                (CHAT, asking(CHAT, stop=["Two"])),
                (CHAT, asking(CHAT, stop=["Two"], stream=True)),
            ],
            {"stop_sequence"},
            id="stop sequence",
        ),
        pytest.param(
            [CALL],
            {},
            [(CHAT, asking(CHAT, stream=on, functions=[FUNCTION])) for on in (False, True)]
            + [(CHAT, asking(CHAT, stream=on, tools=TOOLS[CHAT], n=2)) for on in (False, True)],
            {"tool_use"},
            id="old functions, and choices",
        ),
        pytest.param(
            [SHELL],
            {},
            [
                (RESPONSES, asking(RESPONSES, stream=on, tools=[{"type": "local_shell"}]))
                for on in (False, True)
            ],
            {"tool_use"},
            id="the shell",
        ),
        pytest.param(
            [MANY],
            {},
            [
                (RESPONSES, asking(RESPONSES, stream=on, tools=IN_A_NAMESPACE))
                for on in (False, True)
            ],
            {"tool_use"},
            id="a namespace",
        ),
    ],
)
async def test_what_is_asked_again_of_the_same_server_is_the_same(
    asked: Any, tmp_path: Path, *, says: Any, rule: Any, bodies: Any, stops: set[str]
) -> None:
    async with serving(settings(observe={"turns_folder": str(tmp_path)})) as server:
        server.says(*says, **rule)
        file = await asked_of_all(server, tmp_path, bodies)
        recorded = [json.loads(line) for line in file.read_text().splitlines()]
        assert {line["stop"] for line in recorded} == stops
        found = await asked("replay", str(file), "--url", server.url)
        assert found["turns"] == []
        assert (found["asked"], found["failed"]) == (len(recorded), 0)


async def test_a_background_turn_is_asked_in_the_foreground(asked: Any, tmp_path: Path) -> None:
    async with serving(settings(observe={"turns_folder": str(tmp_path)})) as server:
        server.says(CALL)
        body = asking(RESPONSES, background=True, tools=TOOLS[RESPONSES])
        answer = await server.http.post(RESPONSES, json=body)
        await server.outside.background.settled()
        assert answer.json()["status"] == "queued"
        file = await asked_of_all(server, tmp_path, [])
        found = await asked("replay", str(file), "--url", server.url)
        assert (found["asked"], found["turns"]) == (1, [])


async def test_a_turn_that_ends_otherwise_is_another(
    asked: Any, typed: Any, tmp_path: Path
) -> None:
    async with serving(settings(observe={"turns_folder": str(tmp_path)})) as server:
        server.says({"text": "Hello."})
        file = await asked_of_all(server, tmp_path, on_every_api())
        server.says({"text": "Hello."}, finish="length")
        found = await asked("replay", str(file), "--url", server.url)
        assert (found["failed"], found["of_another_shape"]) == (0, 6)
        assert {one["now"]["stop"] for one in found["turns"]} == {"length"}
        told = await asyncio.to_thread(typed, "replay", str(file), "--url", server.url)
        assert told.exit_code == 1
        assert "no call (end) became no call (length)" in told.output


async def test_a_turn_that_dies_has_failed(asked: Any, typed: Any, tmp_path: Path) -> None:
    async with serving(settings(observe={"turns_folder": str(tmp_path)})) as server:
        server.says({"text": "Hello, and more than a few words of it."})
        file = await asked_of_all(server, tmp_path, on_every_api())
        server.says({"text": "Hello, and more than a few words of it."}, fail_after=3)
        found = await asked("replay", str(file), "--url", server.url)
        assert (found["failed"], found["of_another_shape"]) == (6, 0)
        assert all("the scenario asked for a failure" in one["error"] for one in found["turns"])
        told = await asyncio.to_thread(typed, "replay", str(file), "--url", server.url)
        assert (told.exit_code, "6 failed" in told.output) == (1, True)


async def test_a_turn_that_died_then_and_not_now_is_another(asked: Any, tmp_path: Path) -> None:
    async with serving(settings(observe={"turns_folder": str(tmp_path)})) as server:
        server.says({"text": "Hello, and more than a few words of it."}, fail_after=3)
        bodies = [turn for turn in on_every_api() if turn[1]["stream"]]
        file = await asked_of_all(server, tmp_path, bodies)
        server.says({"text": "Hello, and more than a few words of it."})
        found = await asked("replay", str(file), "--url", server.url)
        assert (found["failed"], found["of_another_shape"]) == (0, 3)
        assert {one["then"]["stop"] for one in found["turns"]} == {"failed"}


async def test_a_file_that_is_no_recording_is_said(asked: Any, tmp_path: Path) -> None:
    file = tmp_path / "other.jsonl"
    file.write_text('{"turn": 1}\n')
    assert "no recording" in (await asked("replay", str(file)))["error"]
    file.write_text("")
    assert "no turns" in (await asked("replay", str(file)))["error"]


async def turned(server: Server) -> str:
    server.says({"text": "Hello."}, CALL)
    body = asking("/v1/messages", tools=TOOLS["/v1/messages"])
    answer = await server.http.post("/v1/messages", json=body, headers={"x-api-key": "mine"})
    return str(answer.json()["id"])


async def test_a_turn_is_shown_to_who_asked_it(asked: Any, typed: Any) -> None:
    mine = {"TREADLE_API_KEY": "mine"}
    store = MemoryStore()
    async with serving(store=store) as other, serving(store=store) as server:
        turn = await turned(other)  # which ingress ran it is the same
        found = await asked("trace", turn, "--url", server.url, env=mine)
        told = await asyncio.to_thread(typed, "trace", turn, "--url", server.url, env=mine)
        theirs = {"TREADLE_API_KEY": "theirs"}
        refused = await asked("trace", turn, "--url", server.url, env=theirs)
    assert [block["kind"] for block in found["blocks"]] == ["text", "call"]
    assert found["gap"] >= 0
    assert "body" not in found
    assert "Hello" not in json.dumps(found)
    assert "weather" in told.output
    assert "tokens in" in told.output
    assert "no turn" in refused["error"]


def test_parity_is_a_command_too(typed: Any, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.json").write_text(json.dumps({"one": 2, "two": 3}))
    told = typed("parity", str(tmp_path / "a.json"), str(tmp_path / "b.json"), "--json")
    assert told.exit_code == 0, told.output
    assert json.loads(told.stdout)["p"] == 1.0

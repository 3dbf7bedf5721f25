from __future__ import annotations

import asyncio
import json
import socket
from pathlib import Path
from typing import Any

import pytest

from cli.machine import haproxy, ports, store
from tests.serving.server import serving


def test_a_port_that_is_taken_is_found() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        found = next(iter(ports(other.getsockname()[1])))
    assert (found.state, found.said) == ("note", "taken")
    assert "http_options.port" in found.do


def test_a_store_that_does_not_answer_is_found_without_its_password() -> None:
    (found,) = store("redis://:hush@127.0.0.1:1/0")
    assert found.state == "bad"
    assert "hush" not in found.said


def test_flags_that_stand_against_ours_are_named() -> None:
    found = [one for one in haproxy({"RAY_SERVE_ENABLE_HA_PROXY": "0"}) if one.state == "note"]
    assert [one.what for one in found] == ["RAY_SERVE_ENABLE_HA_PROXY"]


def test_the_doctor_looks_at_everything(typed: Any) -> None:
    told = typed("doctor", "--url", "http://127.0.0.1:1", "--json")
    found = {one["what"]: one for one in json.loads(told.stdout)}
    assert {"python", "ray", "memory", "store", "haproxy", "server"} <= found.keys()
    assert found["server"]["do"] == "treadle serve scripted"
    assert "python" in typed("doctor", "--url", "http://127.0.0.1:1").output


@pytest.mark.parametrize("words", [["doctor"], ["models"]])
async def test_a_server_is_asked(asked: Any, words: list[str]) -> None:
    async with serving() as server:
        said = await asked(*words, "--url", server.url)
    assert "lab-model" in json.dumps(said)


async def test_the_prefix_doctor_reads_two_turns(asked: Any) -> None:
    async with serving() as server:
        server.says({"text": "Hello."})
        body = {"model": "lab-model", "max_tokens": 50}
        turns = []
        for words in ("one", "two"):
            asking = body | {"messages": [{"role": "user", "content": words}]}
            answer = await server.http.post("/v1/messages", json=asking)
            turns.append(answer.json()["id"])
        said = await asked("doctor", "prefix", *turns, "--url", server.url)
        first = await asked("doctor", "prefix", turns[0], "--url", server.url)
        unknown = await asked("doctor", "prefix", "nowhere", "--url", server.url)
    assert said["break"]["cause"]
    assert f"treadle doctor prefix OTHER {turns[0]}" in first["error"]
    assert "no turn" in unknown["error"]


@pytest.mark.parametrize(
    "words",
    [
        ["doctor", "--url", "{url}", "--key-file", "{file}", "--json", "prefix", "nowhere"],
        ["doctor", "--url", "http://127.0.0.1:1", "prefix", "nowhere", "--url", "{url}", "--json"],
    ],
)
async def test_the_prefix_doctor_asks_the_server_that_its_group_names(
    typed: Any, tmp_path: Path, words: list[str]
) -> None:
    (tmp_path / "key").write_text("a-key\n")
    async with serving() as server:
        line = [word.format(url=server.url, file=tmp_path / "key") for word in words]
        elsewhere = {"TREADLE_URL": "http://127.0.0.1:2"}
        told = await asyncio.to_thread(typed, *line, env=elsewhere)
    assert "no turn" in json.loads(told.stdout)["error"], told.output

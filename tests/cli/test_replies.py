"""Answers of servers that are not ours, or not well: each is one turn's trouble, told in words."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from cli.replies import Heard
from observe.turn_traces import BlockSeen, TurnTrace

PATHS = {
    "messages": "/v1/messages",
    "chat": "/v1/chat/completions",
    "responses": "/v1/responses",
}


class Answers(BaseHTTPRequestHandler):
    """Gives what `given` has for the model that is asked."""

    given: ClassVar[dict[str, bytes]] = {}

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.given[body["model"]])

    def log_message(self, *_: Any) -> None:
        pass


Replays = Callable[..., Any]


@pytest.fixture
def replays(typed: Any, tmp_path: Path) -> Iterator[Replays]:
    """Replays one recorded turn of an API an answer; gives the exit code and the JSON of it all."""
    with HTTPServer(("127.0.0.1", 0), Answers) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()

        def run(*turns: tuple[str, bool, bytes]) -> tuple[int, Any]:
            Answers.given = {f"m{number}": turn[2] for number, turn in enumerate(turns)}
            lines = [line(f"m{n}", api, stream=on) for n, (api, on, _) in enumerate(turns)]
            file = tmp_path / "turns.jsonl"
            file.write_text("\n".join(lines))
            url = f"http://127.0.0.1:{server.server_port}"
            told = typed("replay", str(file), "--url", url, "--json")
            assert isinstance(told.exception, SystemExit | None), told
            return told.exit_code, json.loads(told.stdout)

        yield run
        server.shutdown()
        thread.join()


def line(model: str, api: str, *, stream: bool) -> str:
    known = {"turn": model, "request": "r", "at": 1.0, "api": api, "path": PATHS[api]}
    said = {"stop": "end", "blocks": [{"kind": "text", "size": 6}], "seconds": 1.0}
    body = {"model": model, "stream": stream}
    return json.dumps(known | said | {"model": model, "stream": stream, "body": body})


def sse(*events: dict[str, Any] | str) -> bytes:
    datas = [event if isinstance(event, str) else json.dumps(event) for event in events]
    return "".join([f"data: {data}\n\n" for data in datas]).encode()


START = {"type": "message_start", "message": {"id": "msg_1"}}
STOP = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}
CREATED = {"type": "response.created", "response": {"id": "resp_1", "status": "in_progress"}}
SAID = {"id": "c", "choices": [{"index": 0, "delta": {"content": "Hi"}, "finish_reason": None}]}
OVER = {"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
LOST = {"message": "the engine was lost"}
DIED = {"type": "response.failed", "response": {"id": "r", "status": "failed", "error": LOST}}

BROKEN = [
    ("messages", True, sse(START, {"type": "error", "error": LOST}), "the engine was lost"),
    ("messages", True, sse(START, STOP), "broke off"),
    ("messages", True, sse(START, {"type": "message_stop"}), "how it ended"),
    ("messages", True, b"", "broke off"),
    ("messages", True, b'data: {"type":"mess', "no JSON"),
    ("messages", True, sse("[]"), "no JSON object"),
    ("messages", True, sse(START | {"message": 7}), "no answer of the API"),
    ("messages", False, b"<html>", "no JSON"),
    ("messages", False, b"\xff", "no JSON"),
    ("messages", False, b"", "no JSON"),
    ("messages", False, b"{}", "no answer of the API"),
    ("messages", False, b'{"content": [], "stop_reason": null}', "how it ended"),
    ("messages", False, json.dumps({"type": "error", "error": LOST}).encode(), "engine was lost"),
    ("responses", True, sse(CREATED, DIED), "the engine was lost"),
    ("responses", True, sse(CREATED, {"type": "error"} | LOST), "the engine was lost"),
    ("responses", True, sse(CREATED), "broke off"),
    ("responses", False, json.dumps(DIED["response"]).encode(), "the engine was lost"),
    ("responses", False, b'{"status": "queued", "output": []}', "how it ended"),
    ("chat", True, sse(SAID, {"error": LOST}, "[DONE]"), "the engine was lost"),
    ("chat", True, sse(SAID, OVER), "broke off"),
    ("chat", True, sse(SAID, "[DONE]"), "how it ended"),
    ("chat", False, json.dumps({"error": LOST}).encode(), "the engine was lost"),
    ("chat", False, b'{"choices": []}', "no answer of the API"),
]


@pytest.mark.parametrize(("api", "stream", "answer", "says"), BROKEN)
def test_an_answer_that_is_no_reply_is_a_turn_that_failed(
    replays: Replays, api: str, stream: bool, answer: bytes, says: str
) -> None:
    code, found = replays((api, stream, answer))
    assert (code, found["failed"], found["of_another_shape"]) == (1, 1, 0)
    assert says in found["turns"][0]["error"]


def test_a_turn_fails_alone(replays: Replays) -> None:
    good = sse(SAID, OVER, "[DONE]")
    code, found = replays(
        ("chat", True, good), ("messages", False, b"<html>"), ("chat", True, good)
    )
    assert (code, found["asked"], found["failed"], found["of_another_shape"]) == (1, 3, 1, 0)
    assert [one["turn"] for one in found["turns"]] == ["m1"]


@pytest.mark.parametrize(
    ("api", "stream", "answer"),
    [
        ("messages", True, sse(START, STOP, {"type": "message_stop"})),
        ("messages", False, b'{"content": [], "stop_reason": "end_turn", "usage": null}'),
        (
            "responses",
            True,
            sse(CREATED, {"type": "response.completed", "response": {"status": "completed"}}),
        ),
        ("responses", False, b'{"status": "completed", "error": null, "output": []}'),
        ("chat", True, sse(SAID, OVER, "[DONE]")),
        ("chat", False, b'{"choices": [{"message": {}, "finish_reason": "stop"}]}'),
    ],
)
def test_what_comes_to_its_end_is_the_same(
    replays: Replays, api: str, stream: bool, answer: bytes
) -> None:
    code, found = replays((api, stream, answer))
    assert (code, found["failed"], found["of_another_shape"]) == (0, 0, 0)


def test_a_turn_whose_client_left_is_compared_as_far_as_it_went() -> None:
    seen = (BlockSeen("call", 2, "weather"),)
    trace = TurnTrace("t", "r", 0.0, "chat", "/", "m", stop="cancelled", blocks=seen)
    then = Heard.of(trace)
    assert Heard(["weather", "forecast"], 1.0, 0.1, 5, stop="tool_use").like(then)
    assert not Heard(["forecast"], 1.0, 0.1, 5, stop="tool_use").like(then)

"""A client of bare bytes: one request, read as far as a test wants, closed when a test wants."""

from __future__ import annotations

import http.client
import json
import select
import time
from typing import Any

from benchmarks.served import Server
from tests.cluster.asks import PATHS, ask
from tests.protocols.apis import parse
from tests.serving.judging import JUDGES, api_of, faults

PATIENCE = 30.0
"""Seconds without a byte after which a stream counts as stuck."""

DELTAS = {"messages": b'_delta"', "responses": b'.delta"', "chat": b'"delta":{'}
"""What each piece of content brings, by API."""


OPENED: list[Exchange] = []
"""The exchanges of the test that runs; what a failed one leaves open is closed at its end."""


class Exchange:
    """One request and what came of it so far. The body is sent `pause` seconds after the headers."""

    def __init__(
        self,
        server: Server,
        path: str,
        body: bytes | None,
        headers: dict[str, str] | None = None,
        *,
        pause: float = 0.0,
    ) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
        self._connection.putrequest("GET" if body is None else "POST", path)
        sent = {"content-type": "application/json"} | (headers or {})
        if body is not None:
            sent["content-length"] = str(len(body))
        for name, value in sent.items():
            self._connection.putheader(name, value)
        self._connection.endheaders()
        time.sleep(pause)
        self._connection.send(body or b"")
        self._socket = self._connection.sock
        self._path = path
        self._over = False
        OPENED.append(self)
        self.raw = b""
        self._response: http.client.HTTPResponse | None = None

    @property
    def response(self) -> http.client.HTTPResponse:
        if self._response is None:
            self._response = self._connection.getresponse()
        return self._response

    @property
    def status(self) -> int:
        return self.response.status

    def answered(self) -> bool:
        """Whether an answer has begun, without waiting for it."""
        return self._response is not None or bool(select.select([self._socket], [], [], 0)[0])

    def header(self, name: str) -> str:
        return self.response.headers.get(name, "")

    def until(self, mark: bytes, count: int = 1) -> None:
        """Read until `mark` was there so many times. Fails when the stream ends before."""
        while self.raw.count(mark) < count:
            data = self.response.read1()
            assert data, f"ended before {count} x {mark!r}: {self.raw[-500:]!r}"
            self.raw += data

    def whole(self) -> bytes:
        """All of it; a stream that is cut off before its own end raises IncompleteRead."""
        while data := self.response.read1():
            self.raw += data
        self._over = True
        self.close()
        return self.raw

    def faults(self) -> list[str]:
        """What the corpus's strict checker finds in a stream of a turn, as far as it was read."""
        api = api_of(self._path)
        if not JUDGES or not api or self._response is None:
            return []
        if not self.header("content-type").startswith("text/event-stream"):
            return []
        return faults(api, self.raw, cut=not self._over)

    def json(self) -> Any:
        return json.loads(self.whole())

    def close(self) -> None:
        """Hang up, whatever was still to come."""
        if self._response is not None:
            self._response.close()
        self._connection.close()


def post(server: Server, api: str, body: Any, *, at: str = "", pause: float = 0.0) -> Exchange:
    """Send a body (bytes as they are) to the endpoint of an API of the application at a prefix."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Exchange(server, at + PATHS[api], data, pause=pause)


def begun(server: Server, api: str, words: str = "go on for ever", *, at: str = "") -> Exchange:
    """A stream of which some content has come."""
    exchange = post(server, api, ask(api, words), at=at)
    exchange.until(DELTAS[api], 4)
    return exchange


def turn(server: Server, api: str, words: str, *, at: str = "", **fields: Any) -> bytes:
    """A whole streamed turn; it must be answered with 200."""
    exchange = post(server, api, ask(api, words, **fields), at=at)
    assert exchange.status == 200, exchange.whole()
    return exchange.whole()


def text(api: str, raw: bytes) -> str:
    """The visible text of a stream."""
    events = [event for _, event in parse(raw) if event != "[DONE]"]
    match api:
        case "messages":
            deltas = [event.get("delta", {}).get("text") for event in events]
        case "responses":
            said = (e for e in events if e["type"] == "response.output_text.delta")
            deltas = [event["delta"] for event in said]
        case _:
            choices = [choice for event in events for choice in event["choices"]]
            deltas = [choice["delta"].get("content") for choice in choices]
    return "".join(delta or "" for delta in deltas)


def get(server: Server, path: str, headers: dict[str, str] | None = None) -> Exchange:
    return Exchange(server, path, None, headers)

"""The judge of all streams: it sees every one of a server, and what is wrong with one fails the test."""

from __future__ import annotations

import pytest

from tests.protocols.apis import NAMES, stream
from tests.serving.asks import PATHS, ask
from tests.serving.judging import JUDGES, Judged, faults
from turns.events import TextDelta, TextEnded, TurnEnded, TurnStarted, Usage

pytestmark = pytest.mark.skipif(
    not JUDGES, reason="no strict checker; set TREADLE_CORPUS to where the corpus is"
)
EACH = pytest.mark.parametrize("api", NAMES)
SAID = [
    TurnStarted(3),
    TextDelta("One word."),
    TextEnded(),
    TurnEnded("end", Usage(3, 0, 3)),
]


@EACH
async def test_every_stream_of_a_server_is_judged(server, api):
    answer = await server.http.post(PATHS[api], json=ask(api, stream=True))
    assert answer.status_code == 200
    await server.http.post(PATHS[api], json=ask(api))
    assert server.judged.streams == 1
    server.judged.check()


@EACH
def test_a_cut_stream_may_lack_its_end_and_nothing_else(api):
    raw = stream(api, SAID)
    assert faults(api, raw, cut=False) == []
    for size in range(0, len(raw), 7):
        assert faults(api, raw[:size], cut=True) == []
    middle = raw[: raw.index(b"word") - 200]
    assert faults(api, middle[: middle.rfind(b"\n\n") + 2], cut=False)
    twice = raw[: raw.rfind(b"\n\n", 0, -2) + 2] * 2
    assert faults(api, twice, cut=True)


@EACH
async def test_a_wrong_stream_fails_the_check(api):
    raw = stream(api, SAID)

    async def app(_scope, _receive, send):
        kind = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": kind})
        await send({"type": "http.response.body", "body": raw[: len(raw) // 2], "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    async def ignore(_message):
        pass

    judged = Judged(app)
    scope = {"type": "http", "method": "POST", "path": PATHS[api]}
    await judged(scope, None, ignore)
    with pytest.raises(AssertionError, match=api):
        judged.check()

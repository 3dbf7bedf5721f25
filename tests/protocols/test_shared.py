"""Framing, bodies, headers, errors and freeform input: what the three APIs share."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocols import freeform, headers, sse
from protocols.counts import COUNTERS
from protocols.registry import APIS
from tests.protocols import apis, legal
from turns.blocks import Text
from turns.errors import (
    AuthenticationError,
    ContextTooLongError,
    EngineError,
    InvalidRequestError,
    NotFoundError,
    OverloadedError,
    TooLargeError,
    TreadleError,
    UnavailableError,
    UnknownModelError,
)
from turns.turn import Hints

EACH = pytest.mark.parametrize("api", apis.NAMES)


@given(text=st.text(legal.CHARACTERS))
def test_a_quoted_text_is_one_line_and_comes_back(text: str) -> None:
    quoted = sse.quote(text)
    assert json.loads(quoted) == text
    assert len(quoted.decode().splitlines()) == 1
    assert sse.dumps([text]) == b"[" + quoted + b"]"


BROKEN = [
    pytest.param(b"", id="empty"),
    pytest.param(b"{", id="cut"),
    pytest.param(b"[]", id="list"),
    pytest.param(b"null", id="null"),
    pytest.param(b"\xff", id="bytes"),
    pytest.param(b'{"model":"\xff"}', id="utf8"),
    pytest.param(b'{"messages":' + b"[" * 100_000 + b"]" * 100_000 + b"}", id="deep"),
    pytest.param(b'{"input":[{"content":' + b"[" * 9_000 + b"]" * 9_000 + b"}]}", id="deep-item"),
    pytest.param(b"{}", id="nothing"),
    pytest.param(b'{"max_tokens":1e999}', id="infinity"),
]


@EACH
@pytest.mark.parametrize("body", BROKEN)
def test_a_broken_body_is_an_invalid_request(api: str, body: bytes) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        APIS[api].decode(body, {}, turn_id="t")
    assert len(caught.value.message) < 300


HALVES = [
    pytest.param(r"a\ud83d", "a\ufffd", id="high"),
    pytest.param(r"\udE80 b", "\ufffd b", id="low"),
    pytest.param(r"\ud83d\ud83d\ude80", "\ufffd🚀", id="high-then-pair"),
    pytest.param(r"\\ud83d", r"\ud83d", id="only-spelled"),
    pytest.param(r"\\\ud83d", "\\\ufffd", id="after-a-backslash"),
]


@EACH
@pytest.mark.parametrize(("written", "expected"), HALVES)
def test_half_characters_are_mended_and_reported(api: str, written: str, expected: str) -> None:
    """A harness that cut an output between two halves must not lose its session."""
    part = {"type": "text" if api != "responses" else "input_text", "text": "HERE"}
    said = [{"role": "user", "content": [part]}]
    sent = apis.REQUESTS[api] | {"input" if api == "responses" else "messages": said}
    body = json.dumps(sent).replace("HERE", written).encode()
    turn = APIS[api].decode(body, {}, turn_id="t")
    assert turn.messages[0].blocks == (Text(expected),)
    assert turn.echo["ignored"] == (["lone surrogates"] if "\ufffd" in expected else [])


JSONS = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), legal.TEXTS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(["type", "role", "content", "text", "name", "id", "input", "tools"]),
            inner,
            max_size=3,
        ),
    ),
    max_leaves=6,
)


@EACH
@settings(max_examples=150, deadline=None)
@given(data=st.data(), value=JSONS)
def test_any_field_may_hold_anything(api: str, data: Any, value: Any) -> None:
    field = data.draw(
        st.sampled_from([*apis.REQUESTS[api], "messages", "input", "reasoning", "nvext"])
    )
    wrapped = data.draw(st.sampled_from([value, [value], {"content": value}, [{"content": value}]]))
    body = json.dumps(apis.REQUESTS[api] | {field: wrapped}).encode()
    try:
        APIS[api].decode(body, {}, turn_id="t")
    except InvalidRequestError as error:
        assert error.message  # noqa: PT017  # accepting it is as good


@pytest.mark.parametrize(
    ("given_headers", "expected"),
    [
        pytest.param({}, ("", ""), id="none"),
        pytest.param({"x-claude-code-session-id": "s"}, ("s", ""), id="claude"),
        pytest.param(
            {"x-claude-code-session-id": "s", "x-claude-code-agent-id": "a"},
            ("s/a", "s"),
            id="claude-agent",
        ),
        pytest.param(
            {
                "x-claude-code-session-id": "s",
                "x-claude-code-agent-id": "b",
                "x-claude-code-parent-agent-id": "a",
            },
            ("s/b", "s/a"),
            id="claude-agents-agent",
        ),
        pytest.param({"thread-id": "t", "session-id": "t"}, ("t", ""), id="codex"),
        pytest.param({"thread-id": "t", "session-id": "s"}, ("t", "s"), id="codex-child"),
        pytest.param(
            {"thread-id": "t", "session-id": "s", "x-codex-parent-thread-id": "p"},
            ("t", "p"),
            id="codex-grandchild",
        ),
        pytest.param({"session_id": "s"}, ("s", ""), id="old-codex"),
        pytest.param({"x-session-id": "s", "x-parent-session-id": "p"}, ("s", "p"), id="opencode"),
        pytest.param({"session-id": "s"}, ("s", ""), id="pi"),
        pytest.param({"x-treadle-session": "own", "x-session-id": "s"}, ("own", ""), id="own-wins"),
        pytest.param({"x-session-id": "x" * 999}, ("", ""), id="too-long"),
        pytest.param({"x-session-id": "a\x00b"}, ("", ""), id="not-plain"),
    ],
)
def test_sessions(given_headers: dict[str, str], expected: tuple[str, str]) -> None:
    assert headers.session(given_headers) == expected


@pytest.mark.parametrize(
    ("given_headers", "nvext", "expected", "ignored"),
    [
        pytest.param({}, None, Hints(), [], id="none"),
        pytest.param(
            {"x-treadle-priority": "7", "x-treadle-latency-sensitivity": "0.5"},
            {"agent_hints": {"priority": 1, "osl": 100}},
            Hints(priority=7, osl=100, latency_sensitivity=0.5),
            [],
            id="headers-win",
        ),
        pytest.param(
            {"x-treadle-osl": "many"}, {}, Hints(), ["agent_hints.osl"], id="malformed-header"
        ),
        pytest.param({"x-treadle-tier": "2"}, None, Hints(tier=2), [], id="tier"),
        pytest.param(
            {}, {"agent_hints": {"tier": 11}}, Hints(), ["agent_hints.tier"], id="no-such-tier"
        ),
        pytest.param({}, "yes", Hints(), ["nvext"], id="malformed-body"),
        pytest.param({"x-treadle-deadline-s": "0"}, None, Hints(deadline_s=0), [], id="no-time"),
        *(
            pytest.param(
                {},
                {"agent_hints": {"deadline_s": bad}},
                Hints(),
                ["agent_hints.deadline_s"],
                id=bad,
            )
            for bad in ("-5", "nan", "inf", "-inf")
        ),
        pytest.param(
            {"x-treadle-speculative-prefill": "true"},
            None,
            Hints(speculative_prefill=True),
            [],
            id="flag",
        ),
    ],
)
def test_hints(
    given_headers: dict[str, str], nvext: Any, expected: Hints, ignored: list[str]
) -> None:
    reported: list[str] = []
    assert headers.hints(given_headers, nvext, reported) == expected
    assert reported == ignored


TTLS = [
    pytest.param("5m", 300, [], id="minutes"),
    pytest.param("1h", 3600, [], id="hours"),
    pytest.param("90s", 90, [], id="seconds"),
    pytest.param(90, 90, [], id="number"),
    pytest.param("0", 0, [], id="none"),
    pytest.param("24h", 86_400, [], id="most"),
    pytest.param("25h", 86_400, ["cache_control.ttl"], id="above-most"),
    pytest.param(10**8, 86_400, ["cache_control.ttl"], id="number-above-most"),
    pytest.param("2d", 0, ["cache_control.ttl"], id="unit"),
    pytest.param("1 h", 0, ["cache_control.ttl"], id="space"),
    pytest.param("soon", 0, ["cache_control.ttl"], id="word"),
    pytest.param("1.5", 0, ["cache_control.ttl"], id="fraction"),
    pytest.param("-4", 0, ["cache_control.ttl"], id="negative"),
]


@EACH
@pytest.mark.parametrize("place", ["header", "body", "nvext"])
@pytest.mark.parametrize(("ttl", "expected", "ignored"), TTLS)
def test_a_ttl_is_honoured_or_named(
    api: str, place: str, ttl: Any, expected: int, ignored: list[str]
) -> None:
    control = {"cache_control": {"type": "ephemeral", "ttl": ttl}}
    fields: dict[str, dict[str, Any]] = {"header": {}, "body": control, "nvext": {"nvext": control}}
    told = {"x-treadle-cache-ttl": str(ttl)} if place == "header" else {}
    body = json.dumps(apis.REQUESTS[api] | fields[place]).encode()
    turn = APIS[api].decode(body, told, turn_id="t")
    assert turn.hints.retain_s == expected
    assert turn.echo["ignored"] == ignored


@pytest.mark.parametrize(
    ("control", "ignored"),
    [
        pytest.param(None, [], id="null"),
        pytest.param({}, [], id="unsaid"),
        pytest.param({"ttl": None}, [], id="null-ttl"),
        pytest.param({"ttl": True}, ["cache_control.ttl"], id="true"),
        pytest.param({"ttl": 1.5}, ["cache_control.ttl"], id="fraction"),
        pytest.param({"ttl": -4}, ["cache_control.ttl"], id="negative"),
        pytest.param("1h", ["cache_control"], id="no-object"),
    ],
)
def test_a_cache_control_of_another_form_keeps_nothing(control: Any, ignored: list[str]) -> None:
    reported: list[str] = []
    assert headers.retention({}, {"cache_control": control}, [control], reported) == 0
    assert reported == ignored


def test_the_longest_ttl_counts() -> None:
    controls = [{"ttl": "5m"}, {"ttl": "1h"}, {"ttl": "soon"}]
    reported: list[str] = []
    assert headers.retention({"x-treadle-cache-ttl": "60"}, None, controls, reported) == 3600
    assert reported == ["cache_control.ttl"]


ERRORS = [
    pytest.param(
        InvalidRequestError("no", param="model"), 400, 400, "invalid_request_error", id="invalid"
    ),
    pytest.param(ContextTooLongError(9, 5), 400, 400, "invalid_request_error", id="too-long"),
    pytest.param(UnknownModelError("no"), 404, 404, "not_found_error", id="model"),
    pytest.param(NotFoundError("no"), 404, 404, "not_found_error", id="absent"),
    pytest.param(AuthenticationError("no"), 401, 401, "authentication_error", id="key"),
    pytest.param(TooLargeError("no"), 413, 413, "request_too_large", id="large"),
    pytest.param(OverloadedError("no", retry_after=7), 529, 429, "overloaded_error", id="full"),
    pytest.param(UnavailableError("no", retry_after=7), 503, 503, "overloaded_error", id="away"),
    pytest.param(EngineError("no"), 500, 500, "api_error", id="engine"),
    pytest.param(TreadleError("no"), 500, 500, "api_error", id="internal"),
]


@pytest.mark.parametrize(("error", "anthropic", "openai", "kind"), ERRORS)
def test_errors(error: TreadleError, anthropic: int, openai: int, kind: str) -> None:
    status, heads, body = APIS["messages"].error(error, request_id="req_1")
    read = json.loads(body)
    assert (status, read["type"], read["error"]["type"]) == (anthropic, "error", kind)
    assert read["request_id"] == heads["request-id"] == "req_1"
    for api in ("chat", "responses"):
        status, theirs, body = APIS[api].error(error, request_id="req_1")
        assert status == openai
        assert set(json.loads(body)["error"]) == {"message", "type", "param", "code"}
        assert theirs.get("retry-after") == heads.get("retry-after")
    assert ("retry-after" in heads) == isinstance(error, OverloadedError)


def test_an_overflow_is_worded_as_harnesses_look_for_it() -> None:
    error = ContextTooLongError(300, 200)
    body = json.loads(APIS["messages"].error(error, request_id="r")[2])
    assert body["error"]["message"] == "prompt is too long: 300 tokens > 200 maximum"
    body = json.loads(APIS["responses"].error(error, request_id="r")[2])["error"]
    assert body["code"] == "context_length_exceeded"
    assert "maximum context length is 200 tokens" in body["message"]
    assert "exceeds the context window" in body["message"]


def test_an_unknown_previous_response_has_its_own_code() -> None:
    error = NotFoundError("no response resp_x", param="previous_response_id")
    body = json.loads(APIS["responses"].error(error, request_id="r")[2])["error"]
    assert body["code"] == "previous_response_not_found"


@settings(max_examples=200, deadline=None)
@given(data=st.data(), text=st.text(legal.CHARACTERS), ascii_only=st.booleans())
def test_freeform_input_is_decoded_as_it_is_written(data: Any, text: str, ascii_only: bool) -> None:
    space = data.draw(st.sampled_from([(",", ":"), (", ", ": "), (" , ", " : ")]))
    whole = json.dumps({"input": text}, ensure_ascii=ascii_only, separators=space)
    stream = freeform.InputStream()
    shown = [stream.feed(piece) for piece in data.draw(legal.pieces(whole))]
    assert "".join(shown) == text
    assert freeform.input_of(whole) == text


@given(data=st.data(), whole=st.one_of(st.text(legal.CHARACTERS), JSONS.map(json.dumps)))
def test_freeform_input_of_another_form_is_left_to_the_end(data: Any, whole: str) -> None:
    stream = freeform.InputStream()
    shown = "".join(stream.feed(piece) for piece in data.draw(legal.pieces(whole)))
    assert freeform.input_of(whole).startswith(shown)


@pytest.mark.parametrize(
    ("path", "body", "expected"),
    [
        pytest.param(
            "/v1/messages/count_tokens",
            {"model": "m", "messages": [{"role": "user", "content": "go"}]},
            {"input_tokens": 7},
            id="messages",
        ),
        pytest.param(
            "/v1/responses/input_tokens",
            {"model": "m", "input": "go"},
            {"object": "response.input_tokens", "input_tokens": 7},
            id="responses",
        ),
    ],
)
def test_counting(path: str, body: dict[str, Any], expected: dict[str, Any]) -> None:
    counter = COUNTERS[path]
    turn = counter.decode(json.dumps(body).encode(), {}, turn_id="t")
    assert turn.messages[0].blocks == (Text("go"),)
    assert json.loads(counter.body(7)) == expected
    assert path.startswith(counter.api.path)

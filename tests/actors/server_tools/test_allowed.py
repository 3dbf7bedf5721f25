"""Which servers may be named, and what they are shown of the client."""

from __future__ import annotations

import pytest

from actors.server_tools.allowed import AllowedServer, AllowList
from turns.errors import InvalidRequestError
from turns.servers import ToolServer

ALLOWED = AllowList(
    [
        AllowedServer("https://tools.example/mcp"),
        AllowedServer("http://own.example/mcp", "http://127.0.0.1:8000/mcp", own=True),
    ]
)
ALICE = {"authorization": "Bearer alice"}


def server(url: str, **more) -> ToolServer:
    return ToolServer("shop", url, where="tools.0", **more)


@pytest.mark.parametrize(
    "url",
    [
        pytest.param("http://169.254.169.254/latest/meta-data", id="metadata"),
        pytest.param("http://127.0.0.1:6379/", id="loopback"),
        pytest.param("http://[::1]/mcp", id="loopback, version 6"),
        pytest.param("http://127.0.0.1:8000/mcp", id="where an allowed one really is"),
        pytest.param("https://tools.example/mcp/../admin", id="a path that climbs"),
        pytest.param("https://tools.example/mcp?x=1", id="a query"),
        pytest.param("https://tools.example/other", id="another path"),
        pytest.param("https://tools.example:444/mcp", id="another port"),
        pytest.param("http://tools.example/mcp", id="another scheme"),
        pytest.param("https://tools.example@evil.example/mcp", id="user information"),
        pytest.param("https://tools.example.evil.example/mcp", id="a longer host"),
        pytest.param("https://TOOLS.example\t/mcp", id="a tab"),
        pytest.param("file:///etc/passwd", id="a file"),
        pytest.param("", id="nothing"),
    ],
)
def test_only_the_declared_urls_are_spoken_to(url):
    with pytest.raises(InvalidRequestError, match="not one that this deployment allows") as refused:
        ALLOWED.target(server(url), ALICE)
    assert refused.value.param == "tools.0"


def test_a_client_s_key_is_shown_to_our_own_gateway_alone():
    foreign = ALLOWED.target(server("https://tools.example/mcp/"), ALICE)
    assert (foreign.url, foreign.headers, foreign.own) == ("https://tools.example/mcp", (), False)
    own = ALLOWED.target(server("http://own.example/mcp"), {"x-api-key": "alice"})
    assert own.url == "http://127.0.0.1:8000/mcp"
    assert own.headers == (("authorization", "Bearer alice"),)


def test_a_token_of_the_request_goes_before_the_clients_key():
    for token in ("t0ken", "Bearer t0ken"):
        target = ALLOWED.target(server("http://own.example/mcp", authorization=token), ALICE)
        assert target.headers == (("authorization", "Bearer t0ken"),)


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param({"x": "a\r\nhost: evil"}, id="a line break"),
        pytest.param({"x\r\ny": "a"}, id="a line break in a name"),
        pytest.param({"Host": "evil.example"}, id="host"),
        pytest.param({"Transfer-Encoding": "chunked"}, id="framing"),
    ],
)
def test_headers_that_could_change_the_request_are_refused(headers):
    with pytest.raises(InvalidRequestError, match="cannot be sent"):
        ALLOWED.target(server("https://tools.example/mcp", headers=headers), ALICE)

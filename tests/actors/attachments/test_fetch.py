"""What may be fetched on a stranger's word, and how much of it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from actors.attachments.fetch import Fetcher, FetchError
from toolruns.addresses import Address

LOOPBACK = "127.0.0.1"
PAGES = {
    "/text": b"HTTP/1.1 200 OK\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: 5\r\n\r\nhello",
    "/chunked": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n3\r\ndef\r\n0\r\n\r\n",
    "/moved": b"HTTP/1.1 302 Found\r\nlocation: /text\r\ncontent-length: 0\r\n\r\n",
    "/round": b"HTTP/1.1 302 Found\r\nlocation: /round\r\ncontent-length: 0\r\n\r\n",
    "/inside": b"HTTP/1.1 302 Found\r\nlocation: http://metadata.test/\r\ncontent-length: 0\r\n\r\n",
    "/file": b"HTTP/1.1 302 Found\r\nlocation: file:///etc/passwd\r\ncontent-length: 0\r\n\r\n",
    "/gone": b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n",
    "/said_large": b"HTTP/1.1 200 OK\r\ncontent-length: 999999999\r\n\r\n",
    "/large": b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n" + b"x" * 5000,
    "/nonsense": b"what?\r\n\r\n",
    "/silent": b"",
}


class Web:
    """A server; `asked` are the request heads that it was sent."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.port = 0
        self.open: set[asyncio.Task[None]] = set()

    def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self.answer(reader, writer))
        self.open.add(task)

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        self.asked.append(head)
        path = head.split(" ")[1]
        writer.write(PAGES[path])
        await writer.drain()
        if path == "/silent":
            await reader.read()
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


@pytest.fixture
async def web() -> AsyncIterator[Web]:
    web = Web()
    server = await asyncio.start_server(web.take, LOOPBACK, 0)
    web.port = server.sockets[0].getsockname()[1]
    yield web
    server.close()
    if web.open:
        await asyncio.wait(web.open, timeout=10)


def fetcher(looked_up: list[str] | None = None, seconds: float = 10.0) -> Fetcher:
    """One that takes this machine for the open internet, and nothing else."""

    def addresses(host: str, _port: int) -> list[str]:
        if looked_up is not None:
            looked_up.append(host)
        return ["169.254.169.254"] if host == "metadata.test" else [LOOPBACK]

    def allowed(address: Address) -> bool:
        return str(address) == LOOPBACK

    return Fetcher(most=1000, seconds=seconds, addresses=addresses, allowed=allowed)


async def test_what_is_there_is_fetched_with_one_look_up(web: Web) -> None:
    names: list[str] = []
    found = await fetcher(names).get(f"http://files.test:{web.port}/text")
    assert (found.media_type, found.data) == ("text/plain", b"hello")
    assert names == ["files.test"]
    (head,) = web.asked
    assert f"Host: files.test:{web.port}" in head
    assert "cookie" not in head.lower()
    assert "authorization" not in head.lower()
    assert (await fetcher().get(f"http://a.test:{web.port}/chunked")).data == b"abcdef"


async def test_a_redirect_is_looked_up_again_and_followed(web: Web) -> None:
    names: list[str] = []
    found = await fetcher(names).get(f"http://a.test:{web.port}/moved")
    assert found.data == b"hello"
    assert names == ["a.test", "a.test"]


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("/inside", "address_not_allowed"),
        ("/file", "unreachable"),
        ("/round", "redirects"),
        ("/gone", "status_404"),
        ("/said_large", "too_large"),
        ("/large", "too_large"),
        ("/nonsense", "unreachable"),
    ],
)
async def test_what_is_not_fetched_says_why(web: Web, path: str, why: str) -> None:
    with pytest.raises(FetchError, match=why):
        await fetcher().get(f"http://a.test:{web.port}{path}")


async def test_a_server_that_is_silent_is_given_up(web: Web) -> None:
    with pytest.raises(FetchError, match="timeout"):
        await fetcher(seconds=0.2).get(f"http://a.test:{web.port}/silent")


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",  # noqa: S104 - an address that must be refused
        "224.0.0.1",
        "::1",
        "fe80::1%eth0",
        "fd00:ec2::254",
        "::ffff:10.0.0.1",
        "64:ff9b::a00:1",
        "2002:7f00:1::",
    ],
)
async def test_no_address_of_a_house_is_connected_to(web: Web, address: str) -> None:
    """Nor where a public address stands beside it."""
    for found in ([address], ["93.184.216.34", address]):
        careful = Fetcher(most=1000, seconds=5, addresses=lambda *_, found=found: found)  # type: ignore[misc]
        with pytest.raises(FetchError, match="address_not_allowed"):
            await careful.get(f"http://a.test:{web.port}/text")
    assert web.asked == []


@pytest.mark.parametrize(
    "url", ["ftp://a/b", "file:///etc/passwd", "http://u:p@a/", "x", "http://["]
)
async def test_no_other_url_is_followed(url: str) -> None:
    with pytest.raises(FetchError):
        await fetcher().get(url)

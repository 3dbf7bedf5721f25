from __future__ import annotations

import asyncio
import gzip
import ipaddress
import json
from urllib.parse import parse_qs, urlsplit

import pytest
import pytest_asyncio

from tests.toolruns.sources.play import Watching, play, read_all
from toolruns import addresses
from toolruns.addresses import is_public
from toolruns.endings import Ending
from toolruns.sources.guard import follow, origin, resolve
from toolruns.sources.http_pages import HttpApi, HttpPages, Paging
from toolruns.sources.source import SourceError

ITEMS = 1000


class Api:
    """A small HTTP server whose every answer a test decides; it remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, str], dict[str, str]]] = []
        self.answer = lambda _: (200, {}, b"[]")
        self.open = 0
        self.quiet = asyncio.Event()
        self.delay = 0.0

    async def __call__(self, reader, writer):
        self.open += 1
        self.quiet.clear()
        try:
            while (head := await reader.readuntil(b"\r\n\r\n")) != b"":
                lines = head.decode().split("\r\n")
                headers = dict(line.split(": ", 1) for line in lines[1:] if line)
                parts = urlsplit(lines[0].split(" ")[1])
                query = {k: v[0] for k, v in parse_qs(parts.query).items()}
                self.asked.append((parts.path, query, {k.lower(): v for k, v in headers.items()}))
                await asyncio.sleep(self.delay)
                status, extra, body = self.answer(query)
                extra = {"content-length": str(len(body)), **extra}
                written = "".join(f"{key}: {value}\r\n" for key, value in extra.items())
                writer.write(f"HTTP/1.1 {status} x\r\n{written}\r\n".encode() + body)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.open -= 1
            if not self.open:
                self.quiet.set()
            writer.close()


@pytest_asyncio.fixture
async def api():
    service = Api()
    server = await asyncio.start_server(service, "127.0.0.1", 0)
    service.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    yield service
    server.close()


def page(start, size=10):
    return [{"id": n, "score": 1 - n / ITEMS} for n in range(start, min(ITEMS, start + size))]


def by_cursor(query):
    start = int(query.get("cursor", "0"))
    after = start + 10
    body = {"data": {"items": page(start)}, "meta": {"next": str(after) if after < ITEMS else None}}
    return 200, {}, json.dumps(body).encode()


def by_page(query):
    return 200, {}, json.dumps(page((int(query["page"]) - 1) * 10)).encode()


def by_offset(query):
    start = int(query.get("offset", "0"))
    return 200, {}, json.dumps(page(start, int(query["limit"]))).encode()


def by_link(query):
    start = int(query.get("from", "0"))
    extra = {"link": f'</items?from={start + 10}>; rel="next"'} if start + 10 < ITEMS else {}
    return 200, extra, json.dumps(page(start)).encode()


STYLES = [
    pytest.param(by_cursor, Paging(style="cursor", next="meta.next"), "data.items", id="cursor"),
    pytest.param(by_page, Paging(style="page", param="page"), "", id="page"),
    pytest.param(
        by_offset,
        Paging(style="offset", param="offset", size_param="limit", size=10),
        "",
        id="offset",
    ),
    pytest.param(by_link, Paging(style="link"), "", id="link"),
]


def source(api, paging=None, items="", arguments=None, **more):
    options = {"url": f"{api.url}/items", "private": True, **more}
    return HttpPages(HttpApi(paging=paging or Paging(), items=items, **options), arguments or {})


@pytest.mark.parametrize(("answer", "paging", "items"), STYLES)
async def test_every_page_comes_once(api, answer, paging, items):
    api.answer = answer
    found = await read_all(source(api, paging, items))
    assert [row["id"] for row in found] == list(range(ITEMS))


@pytest.mark.parametrize(("answer", "paging", "items"), STYLES)
async def test_three_of_a_hundred_pages_are_asked_for(api, answer, paging, items):
    api.answer = answer
    watched = Watching(source(api, paging, items))
    live, view, ending = await play(watched, "count >= 25", mode="paginated")
    assert (ending, view["pages"], len(api.asked)) == (Ending.PREDICATE_SATISFIED, 3, 3)
    assert watched.closed == 1
    assert live.closed_in < 0.25
    async with asyncio.timeout(5):
        await api.quiet.wait()


async def test_a_stalled_page_is_left_within_the_budget(api):
    api.answer, api.delay = by_cursor, 60.0
    live, _, ending = await play(
        source(api, Paging(next="meta.next"), "data.items"), mode="paginated", seconds=0.3
    )
    assert ending is Ending.BUDGET_WALL_CLOCK
    assert live.closed_in < 0.25


async def test_a_later_run_goes_on_at_the_cursor(api):
    api.answer = by_cursor
    paging = Paging(next="meta.next")
    live, _, _ = await play(source(api, paging, "data.items"), "count >= 20", mode="paginated")
    again = HttpPages(
        HttpApi(url=f"{api.url}/items", paging=paging, items="data.items", private=True),
        {},
        live.run.cursor,
    )
    await again.open()
    assert (await again.read(1)).batch.column("id")[0].as_py() == 20
    await again.close()


async def test_arguments_go_into_path_and_query_as_values(api):
    api.answer = lambda _: (200, {}, b"[]")
    shop = source(
        api,
        arguments={"shop": "a/../../b?x=1", "q": "x&admin=1", "flag": True},
        url=f"{api.url}/shops/{{shop}}/items",
        headers={"authorization": "Bearer secret"},
    )
    assert await read_all(shop) == []
    path, query, headers = api.asked[0]
    assert path == "/shops/a%2F..%2F..%2Fb%3Fx%3D1/items"
    assert query == {"q": "x&admin=1", "flag": "true"}
    assert headers["authorization"] == "Bearer secret"


@pytest.mark.parametrize("evil", ["..", ".", ""])
def test_dot_segments_are_refused(api, evil):
    with pytest.raises(SourceError, match="may not be"):
        source(api, arguments={"shop": evil}, url=f"{api.url}/shops/{{shop}}")


async def test_busy_upstreams_are_asked_again(api):
    busy = (429, {"retry-after": "0"}, b"")
    answers = [busy, (503, {"retry-after": "0"}, b""), (200, {}, b'{"items":[7]}')]
    api.answer = lambda _: answers.pop(0)
    assert await read_all(source(api, Paging(), "items")) == [{"value": 7}]
    assert len(api.asked) == 3


async def test_an_upstream_that_stays_busy_is_given_up(api):
    api.answer = lambda _: (429, {"retry-after": "0"}, b"")
    with pytest.raises(SourceError, match="answered 429"):
        await read_all(source(api))
    assert len(api.asked) == 3


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        pytest.param((500, {}, b"stack trace"), "answered 500", id="500"),
        pytest.param((404, {}, b""), "answered 404", id="404"),
        pytest.param(
            (302, {"location": "http://169.254.169.254/"}, b""), "redirects", id="redirect"
        ),
        pytest.param((200, {}, b"<html>"), "not JSON", id="html"),
        pytest.param((200, {}, b'{"other":1}'), "no list of items at the top", id="no-items"),
        pytest.param((200, {}, b"[" + b"1," * 600_000 + b"1]"), "larger than 1000000", id="large"),
        pytest.param(
            (200, {"content-encoding": "gzip"}, gzip.compress(b"[" + b"1," * 10**7 + b"1]")),
            "larger than",
            id="bomb",
        ),
        pytest.param(
            (200, {"link": '<http://evil.example/x>; rel="next"'}, b"[1]"),
            "another server",
            id="foreign-link",
        ),
        pytest.param(
            (200, {"link": '<http://127.0.0.1:1/x>; rel="next"'}, b"[1]"),
            "another server",
            id="other-port",
        ),
        pytest.param(
            (200, {"link": '<file:///etc/passwd>; rel="next"'}, b"[1]"),
            "not allowed",
            id="file-link",
        ),
        pytest.param(
            (200, {"link": '<//user@127.0.0.1/x>; rel="next"'}, b"[1]"),
            "not allowed",
            id="userinfo",
        ),
    ],
)
async def test_bad_upstreams_end_the_run_with_a_reason(api, answer, message):
    api.answer = lambda _: answer
    _, view, ending = await play(
        source(api, Paging(style="link"), max_page_bytes=10**6), mode="paginated"
    )
    assert ending is Ending.UPSTREAM_ERROR
    assert message in view["notes"][-1]


async def test_a_cursor_that_does_not_move_is_noticed(api):
    api.answer = lambda _: (200, {}, b'{"items":[1],"next_cursor":"a"}')
    _, view, ending = await play(source(api, Paging(), "items"), mode="paginated")
    assert ending is Ending.UPSTREAM_ERROR
    assert "same cursor twice" in view["notes"][-1]


async def test_an_upstream_that_says_it_cut_is_not_complete(api):
    api.answer = lambda _: (200, {}, b'{"items":[],"more":true}')
    _, view, ending = await play(source(api, Paging(), "items", truncated="more"), mode="paginated")
    assert ending is Ending.UPSTREAM_TRUNCATED
    assert not view["complete"]


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "localhost",
        "[::1]",
        "169.254.169.254",
        "10.0.0.8",
        "192.168.1.1",
        "0.0.0.0",  # noqa: S104 (an address to refuse)
        "[::ffff:127.0.0.1]",
        "[fe80::1]",
        "[64:ff9b::7f00:1]",
        "2130706433",
        "0x7f.1",
        "127.1",
        "100.64.0.1",
        "[fd00::1]",
    ],
)
async def test_inner_addresses_are_refused_unless_declared(host):
    with pytest.raises(SourceError, match=r"not allowed|cannot be resolved"):
        await resolve(f"http://{host}/", private=False)


async def test_one_inner_address_among_many_refuses_the_name(monkeypatch):
    async def both(*_, **__):
        return [(0, 0, 0, "", ("93.184.216.34", 80)), (0, 0, 0, "", ("10.0.0.1", 80))]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", both)
    with pytest.raises(SourceError, match="not allowed"):
        await resolve("http://two.example/", private=False)


async def test_the_connection_goes_to_the_address_that_was_checked(monkeypatch):
    async def outer(*_, **__):
        return [(0, 0, 0, "", ("93.184.216.34", 443))]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", outer)
    target = await resolve("https://api.example/x?y=1", private=False)
    assert (target.ip, target.host, target.port) == ("93.184.216.34", "api.example", 443)


@pytest.mark.parametrize(
    "url",
    [
        "ftp://x/",
        "http:///x",
        "http://u:p@x/",
        "http://x:99999/",
        "file:///x",
        "gopher://x",
        "//x",
        "",
    ],
)
def test_only_plain_http_urls_have_an_origin(url):
    with pytest.raises(SourceError):
        origin(url)


def test_links_stay_at_the_declared_origin():
    assert follow("http://a/x", "http://a/x?p=1", "?p=2") == "http://a/x?p=2"
    assert follow("http://a/x", "http://a/x", "http://A:80/y") == "http://A:80/y"
    with pytest.raises(SourceError):
        follow("https://a/x", "https://a/x", "http://a/x")


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("93.184.216.34", True),
        ("2606:2800:220:1::1", True),
        ("224.0.0.1", False),
        ("2002:7f00:1::", False),
    ],
)
def test_public_addresses(address, public):
    assert is_public(ipaddress.ip_address(address)) is public
    assert addresses.PORTS["https"] == 443

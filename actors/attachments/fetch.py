"""Fetching what a URL leads to, on the word of somebody who may mean ill.

The name is resolved once and the connection made to the very address that was checked, so that no
second resolution can lead elsewhere; each redirect is checked like the first URL. Size and time are
bounded as a whole. No cookies, no credentials, no proxy, nothing of the client's request.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import socket
import ssl
from collections.abc import Callable
from functools import cache
from urllib.parse import urljoin, urlsplit

from msgspec import Struct

from toolruns.addresses import Address, is_public, origin, parsed

REDIRECTS = 3
MOVED = (301, 302, 303, 307, 308)
CHUNK = 65_536
AT_ONCE = 8

Addresses = Callable[[str, int], list[str]]


class FetchError(Exception):
    """Why nothing was fetched, in a word that may stand in a response header."""


class Fetched(Struct, frozen=True):
    """What came of a URL: its media type as the server says it, lower case, and its bytes."""

    media_type: str
    data: bytes


def looked_up(host: str, port: int) -> list[str]:
    """The addresses of a name. Raises OSError."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(entry[4][0]) for entry in found]


class Fetcher:
    """`most` bytes of one answer, `seconds` for all of it, redirects and look-ups included."""

    def __init__(
        self,
        *,
        most: int,
        seconds: float,
        addresses: Addresses = looked_up,
        allowed: Callable[[Address], bool] = is_public,
    ) -> None:
        self._most = most
        self._seconds = seconds
        self._addresses = addresses
        self._allowed = allowed
        self._free = asyncio.Semaphore(AT_ONCE)

    async def get(self, url: str) -> Fetched:
        """Raises FetchError."""
        going = _Going(self._most, self._seconds, self._addresses, self._allowed)
        try:
            async with self._free, asyncio.timeout(self._seconds):
                return await asyncio.to_thread(going.get, url)
        except TimeoutError:
            raise FetchError("timeout") from None
        finally:
            going.end()  # the thread of one that is given up ends with its socket


class _Going:
    """One fetch, in a thread."""

    def __init__(
        self,
        most: int,
        seconds: float,
        addresses: Addresses,
        allowed: Callable[[Address], bool],
    ) -> None:
        self._most = most
        self._seconds = seconds
        self._addresses = addresses
        self._allowed = allowed
        self._socket: socket.socket | None = None
        self._over = False

    def get(self, url: str) -> Fetched:
        try:
            for _ in range(REDIRECTS + 1):
                found = self._once(url)
                if isinstance(found, Fetched):
                    return found
                url = found
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise FetchError("unreachable") from error
        raise FetchError("redirects")

    def end(self) -> None:
        self._over = True
        if self._socket is not None:
            with contextlib.suppress(OSError):  # a close alone wakes nobody who reads from it
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def _once(self, url: str) -> Fetched | str:
        """What the URL leads to, or the URL it sends on to."""
        connection = self._connected(url)
        try:
            parts = urlsplit(url)
            target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            headers = {"accept-encoding": "identity", "user-agent": "treadle"}
            connection.request("GET", target, headers=headers)
            answer = connection.getresponse()
            if answer.status in MOVED:
                return urljoin(url, answer.headers.get("location") or "")
            if answer.status != http.HTTPStatus.OK:
                raise FetchError(f"status_{answer.status}")
            media = answer.headers.get_content_type()
            return Fetched(media, self._read(answer))
        finally:
            connection.close()

    def _connected(self, url: str) -> http.client.HTTPConnection:
        """A connection to an address that was looked at, speaking to the name."""
        scheme, host, port = origin(url)
        found = self._addresses(host, port)
        if not found or not all(self._allowed(parsed(address)) for address in found):
            raise FetchError("address_not_allowed")
        connection = http.client.HTTPConnection(host, port)
        sock = socket.create_connection((found[0], port), timeout=self._seconds)
        self._socket = connection.sock = sock
        if scheme == "https":
            try:
                secured = _tls().wrap_socket(
                    sock, server_hostname=host, do_handshake_on_connect=False
                )
                self._socket = connection.sock = secured
                secured.do_handshake()
            except BaseException:
                connection.close()
                raise
        if self._over:
            self.end()
        return connection

    def _read(self, answer: http.client.HTTPResponse) -> bytes:
        if int(answer.headers.get("content-length") or 0) > self._most:
            raise FetchError("too_large")
        pieces: list[bytes] = []
        size = 0
        while piece := answer.read1(CHUNK):
            size += len(piece)
            if size > self._most:
                raise FetchError("too_large")
            pieces.append(piece)
        return b"".join(pieces)


@cache
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()

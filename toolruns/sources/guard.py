"""Which addresses a source may talk to. Written for URLs that an upstream, not we, put together.

A next-page link may only lead to the origin that the operator declared. The name is resolved here
and the connection made to the very address that was checked, so that a second resolution cannot
lead elsewhere. Loopback, private, link-local (the clouds' metadata service) and reserved addresses
are refused unless the declaration says `private`.
"""

from __future__ import annotations

import asyncio
import socket
from urllib.parse import urljoin

from msgspec import Struct

from toolruns import addresses
from toolruns.sources.source import SourceError


class Target(Struct, frozen=True):
    """A checked address: connect to `ip`, speak as `host`."""

    url: str
    host: str
    port: int
    ip: str


def origin(url: str) -> tuple[str, str, int]:
    """Scheme, host and port. Raises SourceError for anything but a plain http(s) URL."""
    try:
        return addresses.origin(url)
    except ValueError:
        raise SourceError(_REFUSED) from None


def follow(declared: str, current: str, link: str) -> str:
    """The absolute URL of `link` on the page `current`, if it stays at the declared origin."""
    url = urljoin(current, link)
    if origin(url) != origin(declared):
        message = "the upstream's next link leads to another server; it was not followed"
        raise SourceError(message)
    return url


async def resolve(url: str, *, private: bool) -> Target:
    """The address to connect to. Raises SourceError when any address of the name is not allowed."""
    _, host, port = origin(url)
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        message = "the upstream's name cannot be resolved"
        raise SourceError(message) from None
    at = [addresses.parsed(str(entry[4][0])) for entry in found]
    if not private and not all(addresses.is_public(address) for address in at):
        raise SourceError(_REFUSED)
    return Target(url, host, port, str(at[0]))


_REFUSED = "the upstream's address is not allowed"

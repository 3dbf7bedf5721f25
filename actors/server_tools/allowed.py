"""Which servers of tools a request may name, and how each of them is reached."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from msgspec import Struct

from turns.errors import InvalidRequestError
from turns.servers import ToolServer

HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
OURS = frozenset({"host", "content-length", "transfer-encoding", "connection", "accept"})
"""Headers that the transport writes; a request must not."""


class AllowedServer(Struct, frozen=True):
    """A server as requests name it (`url`) and where it really is (`connect`, "" for the same).
    One that is `own` is our gateway: it is shown the client's own key, so that rows are theirs.
    """

    url: str
    connect: str = ""
    own: bool = False


class Target(Struct, frozen=True):
    """A server as it is called for one client."""

    label: str
    url: str
    headers: tuple[tuple[str, str], ...] = ()
    own: bool = False


class AllowList:
    """Matches whole URLs: a part of one would let a request choose the host or the path."""

    def __init__(self, servers: Iterable[AllowedServer]) -> None:
        self._servers = {_plain(server.url): server for server in servers}

    def target(self, server: ToolServer, headers: Mapping[str, str]) -> Target:
        """How to call the server for the client of these request headers.

        Raises InvalidRequestError for a server that is not allowed.
        """
        allowed = self._servers.get(_plain(server.url))
        if allowed is None:
            message = (
                f"The MCP server '{server.label}' ({server.url[:200]}) is not one that this "
                "deployment allows; ask its operator to add it to `tool_servers.allow`"
            )
            raise InvalidRequestError(message, param=server.where)
        shown = {name.lower(): value for name, value in server.headers.items()}
        for name, value in shown.items():
            if not HEADER.fullmatch(name) or name in OURS or not value.isprintable():
                message = f"The header '{name[:100]}' cannot be sent to an MCP server"
                raise InvalidRequestError(message, param=f"{server.where}.headers")
        if server.authorization:
            shown["authorization"] = f"Bearer {server.authorization.removeprefix('Bearer ')}"
        elif allowed.own and "authorization" not in shown:
            key = headers.get("authorization") or headers.get("x-api-key") or ""
            if key:
                shown["authorization"] = f"Bearer {key.removeprefix('Bearer ').strip()}"
        url = allowed.connect or allowed.url
        return Target(server.label, url, tuple(sorted(shown.items())), allowed.own)


def _plain(url: str) -> str:
    return url.strip().rstrip("/")

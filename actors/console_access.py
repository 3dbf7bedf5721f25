"""Who may see the console. One check, asked before every answer that has data in it.

The console shows what all clients asked and were answered, so it is no page for whoever can reach
the port. Where keys are asked for, one with the scope `console` opens it; without keys it is for
people on this machine alone. A web page elsewhere must not read it
through its visitor's browser either: nothing is told to a request of another origin, nor under a
host name that somebody else's DNS could point here.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit

CLOSED = (
    "the console is open on this machine alone, at http://127.0.0.1 or http://localhost; from "
    "elsewhere forward the port (ssh -L), show the admin's key, or set console.access to `anyone` "
    "where only those who may see everything can reach it"
)


def may_see_console(
    headers: Mapping[str, str],
    *,
    key: str = "",
    peer: str = "",
    local: str = "",
    anyone: bool = False,
) -> bool:
    """`headers` by lower-case name; `key` is the id of a key with which the gate let the caller in,
    having seen that it has the scope; `peer` and `local` are the two addresses of the connection:
    behind a proxy on this machine both are this machine's.
    """
    if not _same_origin(headers):
        return False
    if key or anyone:
        return True
    here = not peer or peer == local or _is_loopback(peer)
    forwarded = [part.strip() for part in headers.get("x-forwarded-for", "").split(",")]
    far = any(part and not _is_loopback(part) for part in forwarded)
    return here and not far and _is_loopback(_host(headers.get("host", "")))


def _same_origin(headers: Mapping[str, str]) -> bool:
    if headers.get("sec-fetch-site", "none") not in {"none", "same-origin"}:
        return False
    origin = headers.get("origin", "")
    try:
        return not origin or urlsplit(origin).netloc == headers.get("host", "")
    except ValueError:
        return False


def _host(named: str) -> str:
    """The name in a Host header, without its port."""
    try:
        return urlsplit(f"//{named}").hostname or ""
    except ValueError:
        return ""


def _is_loopback(name: str) -> bool:
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return False

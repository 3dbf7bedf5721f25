"""Addresses of the open internet, and URLs: what may be connected to on a stranger's word."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

PORTS = {"http": 80, "https": 443}
Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


def origin(url: str) -> tuple[str, str, int]:
    """Scheme, host and port. Raises ValueError for anything but a plain http(s) URL."""
    parts = urlsplit(url)
    port = parts.port or PORTS.get(parts.scheme, 0)
    if parts.scheme not in PORTS or not parts.hostname or parts.username or parts.password:
        raise ValueError("not a plain http or https URL")
    return parts.scheme, parts.hostname.lower().rstrip("."), port


def is_public(address: Address) -> bool:
    """Whether an address is of the open internet, also when it is wrapped in an IPv6 one."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if inner is not None:
            return is_public(inner)
        if address in _NAT64:
            return is_public(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    return address.is_global and not address.is_multicast


def parsed(text: str) -> Address:
    """An address as the resolver gives it, a zone at its end left out."""
    return ipaddress.ip_address(text.split("%", maxsplit=1)[0])

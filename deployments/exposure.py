"""Who may reach a server: beyond this machine only where callers show keys, or where it is told to.

Ray Serve listens on all interfaces where a config says nothing, so nothing said is exposed.
"""

from __future__ import annotations

import ipaddress

from deployments.settings import AccessSettings


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address; a name is not trusted but `localhost`."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def exposed(host: str, access: AccessSettings) -> str:
    """What is wrong with listening there; "" where it is fine."""
    if access.keys == "required" or access.exposed or is_loopback(host):
        return ""
    return (
        f"anyone who reaches {host} could use this server: it asks for no keys "
        "(access.keys is off, access.exposed is not set)"
    )

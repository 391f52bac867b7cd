"""Under which host names clients may ask: the header Host. docs/reference/gateway.md, "Host names"

A page of another site can point its own name to this machine (DNS rebinding), and its browser would let it read the
answers. An address in the header is none of a page's: a browser names what it was told to open."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from urllib.parse import urlsplit

from rumq.settings.table.gateway import Gateway

ANY = "*"
SHOWN_MAX = 100


class HostNames:
    """allowed: names in lower case; None: any"""

    def __init__(self, settings: Gateway, *, is_loopback: bool) -> None:
        """is_loopback: of the address that is listened on"""
        self._allowed = allowed_names(settings.hosts, settings.host, is_loopback=is_loopback)

    def refusal(self, header: str | None) -> str:
        """Why a request with this header is refused; empty: it is not. header: a browser always sends one"""
        if self._allowed is None or not header:
            return ""
        name = host_of(header)
        if name in self._allowed or is_address(name) or name.endswith(".localhost"):
            return ""
        return (
            f"host {header[:SHOWN_MAX]!r} is not served here: ask for an address, or for "
            f"{', '.join(sorted(self._allowed))}; gateway.hosts lists further names"
        )


def allowed_names(hosts: Sequence[str], host: str, *, is_loopback: bool) -> frozenset[str] | None:
    if ANY in hosts or not (hosts or is_loopback):
        return None
    own = () if host == ANY or is_address(host) else (host,)
    return frozenset(each.lower() for each in (*hosts, *own, "localhost"))


def host_of(header: str) -> str:
    """The name or address without port, in lower case; empty for what is none. RFC 9110, 7.2"""
    try:
        return (urlsplit(f"//{header}").hostname or "").removesuffix(".")
    except ValueError:
        return ""


def is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        return False
    return True

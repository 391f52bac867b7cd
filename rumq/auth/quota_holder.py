"""Whose share of a limit a connection takes: that of its address, of IPv6 that of its network of 64 bits.

One customer has a /64 at least (RFC 6177), and as many addresses in it as it likes. Knows no connection."""

from __future__ import annotations

import ipaddress
from functools import lru_cache

UNIX = "unix"
NETWORK_BITS = 64


@lru_cache(maxsize=4096)
def holder_of(address: str) -> str:
    """address: without port, as "10.0.0.1", "2001:db8::1%eth0" or "unix:4711"; anything else stands for itself"""
    if ":" not in address:
        return address
    if address.startswith(UNIX):
        return UNIX
    try:
        found = ipaddress.IPv6Address(address.strip("[]").partition("%")[0])
    except ValueError:
        return address
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.IPv6Network((int(found) >> NETWORK_BITS << NETWORK_BITS, NETWORK_BITS)))


def holder_of_peer(peer: str) -> str:
    """peer: address and port, as connections name it"""
    return holder_of(peer if peer.startswith(UNIX) else peer.rpartition(":")[0] or peer)

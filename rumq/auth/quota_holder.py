"""The holder that a connection without a user name is counted for in quotas: its IPv4 address, or its IPv6 /64.

A customer has at least a /64 (RFC 6177), with as many addresses as it likes."""
# compiled: warm

from __future__ import annotations

import ipaddress
from functools import lru_cache

UNIX = "unix"
NETWORK_BITS = 64


@lru_cache(maxsize=4096)
def holder_of(address: str) -> str:
    """address: without port, as "10.0.0.1", "2001:db8::1%eth0" or "unix:4711"; anything else is returned as it is"""
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
    """peer: address and port, as of a connection"""
    return holder_of(peer if peer.startswith(UNIX) else peer.rpartition(":")[0] or peer)

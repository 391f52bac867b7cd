"""Connections of the gateway to the broker: a Unix socket in the data directory, where a user name needs no password.

Each begins with a PROXY header, which tells the broker for which client the gateway speaks (version 1, for text)."""

from __future__ import annotations

import ipaddress

import trio

from rumq.unix_address import Address

OWN = b"PROXY UNKNOWN\r\n"  # the gateway itself


def header_for(host: str, port: int) -> bytes:
    """The header of a connection for a client at this address."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return OWN
    address = getattr(address, "ipv4_mapped", None) or address
    here = "::1" if address.version == 6 else "127.0.0.1"
    return f"PROXY TCP{address.version} {address} {here} {port} 0\r\n".encode()


async def open_broker(path: str, header: bytes = OWN) -> trio.SocketStream:
    """raises: OSError, trio.BrokenResourceError"""
    with Address(path) as address:
        stream = await trio.open_unix_socket(address)
    try:
        await stream.send_all(header)
    except BaseException:
        await trio.aclose_forcefully(stream)
        raise
    return stream

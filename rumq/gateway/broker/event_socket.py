"""The socket to which processes send events that nobody can ask them for: the supervisor, Flight, exporters."""

from __future__ import annotations

import os
from collections.abc import Callable

import trio

from rumq.unix_address import Address

NAME = "events.sock"
DATAGRAM_BYTES_MAX = 1 << 18


async def receive_events(directory: str, take: Callable[[bytes], None]) -> None:
    """Until cancelled. A second gateway of the same directory leaves the socket to the first."""
    path = f"{directory}/{NAME}"
    sock = trio.socket.socket(trio.socket.AF_UNIX, trio.socket.SOCK_DGRAM)
    with sock:
        try:
            if os.path.exists(path):
                if await is_used(path):
                    return
                os.unlink(path)  # of one that was killed
            with Address(path) as address:
                await sock.bind(address)
            os.chmod(path, 0o600)
        except OSError:
            return  # a directory that cannot be written: those events stay on standard error
        try:
            while True:
                take(await sock.recv(DATAGRAM_BYTES_MAX))
        finally:
            os.unlink(path)


async def is_used(path: str) -> bool:
    with trio.socket.socket(trio.socket.AF_UNIX, trio.socket.SOCK_DGRAM) as sock:
        try:
            with Address(path) as address:
                await sock.connect(address)
        except OSError:
            return False
        return True

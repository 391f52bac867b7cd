"""MQTT clients that connect and are quiet, and topics that are known."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager

from bench.connections import connect_packet, subscribe_packet


@contextmanager
def connected(port: int, count: int) -> Iterator[list[socket.socket]]:
    """That many clients, each with a subscription of its own."""
    made: list[socket.socket] = []
    try:
        for number in range(count):
            sock = socket.create_connection(("127.0.0.1", port), timeout=30)
            made.append(sock)
            sock.sendall(connect_packet(f"quiet-{number}") + subscribe_packet(f"quiet/{number}", 0))
        for sock in made:
            got = b""
            while len(got) < 9:
                piece = sock.recv(64)
                if not piece:
                    raise RuntimeError(f"refused: {got.hex()}")
                got += piece
        yield made
    finally:
        for sock in made:
            sock.close()

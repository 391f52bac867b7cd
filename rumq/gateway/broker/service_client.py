"""Asks the gRPC server of this node for its figures, over a Unix socket in the data directory."""

from __future__ import annotations

import msgspec

from rumq.admin.figures import ServiceFigures
from rumq.admin.socket.admin_client import ask_socket

NAME = "grpc.sock"
SECONDS_MAX = 1.0


async def maybe_services(directory: str) -> ServiceFigures | None:
    """None: there is no such server, or it does not answer."""
    try:
        line = await ask_socket(directory, NAME, b"figures\n", SECONDS_MAX)
        return msgspec.json.decode(line, type=ServiceFigures)
    except (OSError, ValueError):
        return None

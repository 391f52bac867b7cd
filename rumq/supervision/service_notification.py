"""State notifications to a service manager, sd_notify(3): ready, reloading, stopping.

Without NOTIFY_SOCKET nothing is sent. Knows no shard and no signal."""

from __future__ import annotations

import os
import socket
import time
from typing import Any

READY, STOPPING = "READY=1", "STOPPING=1"


def reloading() -> str:
    """The state from a SIGHUP until READY: `Type=notify-reload` of systemd wants to know when it began."""
    return f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}"


def notify(state: str) -> None:
    """Tell the service manager, if one started us. Errors are not told: clients are served all the same."""
    path = os.environ.get("NOTIFY_SOCKET", "")
    if not path:
        return
    address: Any = "\0" + path[1:] if path.startswith("@") else path
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        # A manager that does not read must not hold the broker up: one datagram fits, or is lost.
        sock.setblocking(False)
        try:
            sock.sendto(state.encode(), address)
        except OSError:
            pass

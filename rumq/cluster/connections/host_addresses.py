"""Addresses of nodes by host name; a name is looked up on a thread, as that may wait."""

from __future__ import annotations

import ipaddress
import socket
import threading
import time
from collections.abc import Callable

FRESH_SECONDS = 30.0


def look_up(host: str) -> str:
    """The first address of a host. raises: OSError"""
    return str(socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][4][0])


def on_a_thread(call: Callable[[], None]) -> None:
    threading.Thread(target=call, name="rumq-resolve", daemon=True).start()


class HostAddresses:
    """An address that is known goes on being used while a newer one is looked up, or cannot be."""

    def __init__(
        self,
        look_up: Callable[[str], str] = look_up,
        start: Callable[[Callable[[], None]], None] = on_a_thread,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._look_up, self._start, self._clock = look_up, start, clock
        self._known: dict[str, str] = {}
        self._asked_at: dict[str, float] = {}
        self._asking: set[str] = set()

    def maybe_find(self, host: str) -> str | None:
        """An IP address; None while the name is not known yet: ask again a little later."""
        try:
            return str(ipaddress.ip_address(host))
        except ValueError:
            pass
        now = self._clock()
        is_fresh = host in self._known and now - self._asked_at[host] < FRESH_SECONDS
        if not is_fresh and host not in self._asking:
            self._asking.add(host)
            self._asked_at[host] = now
            self._start(lambda: self._ask(host))
        return self._known.get(host)

    def _ask(self, host: str) -> None:
        try:
            self._known[host] = self._look_up(host)
        except OSError:
            pass  # asked again at the next dial
        finally:
            self._asking.discard(host)

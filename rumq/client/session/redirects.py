"""Server redirection: "use another server" and "server moved", followed a bounded number of times. MQTT 5.0, 4.11."""

from collections.abc import Callable
from typing import NamedTuple

from rumq.client.session.packet_stream import OpenStream
from rumq.mqtt.properties import Properties
from rumq.mqtt.reasons import Reason

HOPS_MAX = 3
BYTES_MAX = 1024  # of a reference
DIRECTED = (Reason.USE_ANOTHER_SERVER, Reason.SERVER_MOVED)

# host and port (None: not said) -> what opens a stream to it
OpenAt = Callable[[str, int | None], OpenStream]


class ServerPlace(NamedTuple):
    host: str
    port: int | None


def maybe_place(reference: str) -> ServerPlace | None:
    """The first of a server reference: names or addresses separated by spaces, each maybe with `:port`."""
    if len(reference) > BYTES_MAX or not (words := reference.split()):
        return None
    host, colon, port = words[0].rpartition(":")
    if not colon or (host.count(":") and not host.endswith("]")):
        host, port = words[0], ""  # a name alone, or an IPv6 address
    if port and not (port.isascii() and port.isdecimal() and 0 < int(port) < 65_536):
        return None
    host = host.removeprefix("[").removesuffix("]")
    return ServerPlace(host, int(port) if port else None) if host else None


class Redirects:
    """Where to connect next. open_stream: as the user said; open_at: to another host, None: redirects are refused"""

    def __init__(self, open_stream: OpenStream, open_at: OpenAt | None, hops_max: int = HOPS_MAX) -> None:
        self._home, self._open_at, self._hops_max = open_stream, open_at, hops_max
        self._next: OpenStream | None = None
        self._hops = 0

    def take(self) -> OpenStream:
        """What opens the next stream: another server is for one connection, then the home is asked again."""
        opened, self._next = self._next or self._home, None
        return opened

    def connected(self) -> None:
        self._hops = 0

    def follow(self, reason: int, properties: Properties) -> bool:
        """Whether a refusal or a DISCONNECT names another server, where `take` goes now."""
        if reason not in DIRECTED or self._open_at is None or self._hops >= self._hops_max:
            return False
        place = maybe_place(properties.get("server_reference", ""))
        if place is None:
            return False
        self._hops += 1
        self._next = self._open_at(*place)
        if reason == Reason.SERVER_MOVED:
            self._home = self._next
        return True

"""New connections of the gateway's port, at most so many a second: what is over that waits, each address in turn.

The rule is the listeners' (`rumq.auth.connection_rate`); here it waits by trio's clock. Knows neither TLS nor HTTP."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable
from typing import NamedTuple

import trio

from rumq.auth.connection_rate import Arrivals, ConnectionRate
from rumq.auth.quota_holder import holder_of
from rumq.gateway.http.http_connection import HttpPeer

LISTENER = "gateway"  # in place of a listener's name
RELEASED_MAX = 64  # in a turn of the loop


class AcceptedConnection(NamedTuple):
    """A connection that was accepted, and from where."""

    sock: socket.socket
    peer: HttpPeer

    def refuse(self) -> None:
        """Cheaply: with a reset, so that nothing is left of it here."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()


class NewConnections:
    """counts: of those over the rate, so far"""

    def __init__(
        self, per_second: int, serve: Callable[[AcceptedConnection], None], event: Callable[..., None]
    ) -> None:
        """per_second: 0: any; serve: begins with a connection; event: is told when connections are over the rate"""
        self.counts = Arrivals()
        self._serve, self._event, self._per_second = serve, event, per_second
        self._rate: ConnectionRate[AcceptedConnection] = ConnectionRate(
            per_second, self.counts, AcceptedConnection.refuse, self._limited
        )
        self._wake = trio.Event()

    def came(self, arrival: AcceptedConnection) -> None:
        """A connection was accepted: serve it now, later or never."""
        if self._rate.admit(arrival, holder_of(arrival.peer.host), trio.current_time()):
            self._serve(arrival)
        else:
            self._wake.set()

    async def run(self) -> None:
        """Serve those that wait, until cancelled."""
        try:
            while True:
                await self._wake.wait()
                for _ in range(RELEASED_MAX):
                    arrival = self._rate.maybe_next(trio.current_time())
                    if arrival is None:
                        break
                    self._serve(arrival)
                if not len(self._rate):
                    self._wake = trio.Event()
                await trio.sleep(self._rate.seconds_to_next(trio.current_time()))
        finally:
            for arrival in self._rate.take_all():
                arrival.sock.close()

    def _limited(self, holder: str) -> None:
        self._event(
            "listener.rate_reached", listener=LISTENER, address=holder, per_second=self._per_second,
            delayed=self.counts.delayed, refused=self.counts.refused,
        )  # fmt: skip

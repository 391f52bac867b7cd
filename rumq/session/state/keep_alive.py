"""Close silent connections: no CONNECT in time, or no packet within 1.5 keep alive intervals. MQTT 5.0, 3.1.2.10.

A deadline is checked when it is reached: a connection that received a packet meanwhile gets its next one. One that
has ended is not retained. Time is an argument."""
# compiled: warm

from __future__ import annotations

from typing import Any, Protocol

from rumq.mqtt.reasons import Reason
from rumq.session.state.deadlines import DeadlineWheel, OnWheel

CHECK_SECONDS = 0.25


class MonitoredClient(Protocol):
    """version: of MQTT, 0 before CONNECT; expires_at: end of its authentication, monotonic seconds"""

    closed: bool
    expires_at: float | None
    keep_alive: float
    version: int

    @property
    def session(self) -> object | None: ...


class MonitoredConnection(OnWheel, Protocol):
    """heard_at: when the last packet came, monotonic seconds"""

    heard_at: float

    @property
    def client(self) -> MonitoredClient: ...

    @property
    def transport(self) -> object: ...

    def dismiss(self, reason: Reason, why: str | None = None) -> None: ...


class MonotonicClock(Protocol):
    @property
    def monotonic(self) -> float: ...


class KeepAlivePort(Protocol):
    @property
    def clock(self) -> MonotonicClock: ...

    def event(self, name: str, client: Any, **fields: object) -> None: ...

    def crashed(self, connection: Any) -> None: ...


class KeepAliveMonitor:
    def __init__(self) -> None:
        self._deadlines = DeadlineWheel()
        self.next_check = 0.0

    def __len__(self) -> int:
        return len(self._deadlines)

    def add(self, link: MonitoredConnection, deadline: float) -> None:
        """Check a connection at `deadline`, or at its earlier one: then it gets the next."""
        if link.due_at > deadline:
            self._deadlines.put(link, deadline)

    def cancel(self, link: MonitoredConnection) -> None:
        """The connection has ended."""
        self._deadlines.cancel(link)

    def check(self, broker: KeepAlivePort) -> None:
        """Close the connections whose time is up."""
        now = broker.clock.monotonic
        self.next_check = now + CHECK_SECONDS
        for link in self._deadlines.take_due(now):
            try:
                self._check_one(link, broker, now)
            except Exception:
                broker.crashed(link.transport)

    def _check_one(self, link: MonitoredConnection, broker: KeepAlivePort, now: float) -> None:
        client = link.client
        if client.closed:
            return
        if client.session is None:
            why = "not authenticated in time" if client.version else "no CONNECT in time"
            broker.event("client.refused", client, reason=0x8D, why=why)
            link.dismiss(Reason.KEEP_ALIVE_TIMEOUT)
            return
        deadlines = []
        if client.expires_at is not None:
            if client.expires_at <= now:
                broker.event("client.refused", client, reason=0x87, why="what it came in by has expired")
                link.dismiss(Reason.NOT_AUTHORIZED, "what you came in by has expired")
                return
            deadlines.append(client.expires_at)
        if client.keep_alive:
            deadlines.append(link.heard_at + 1.5 * client.keep_alive)
            if deadlines[-1] <= now:
                broker.event("client.lost", client, why="keep alive ran out")
                link.dismiss(Reason.KEEP_ALIVE_TIMEOUT, "no packet within one and a half keep alive intervals")
                return
        if deadlines:
            self.add(link, min(deadlines))

"""Connections whose transport is still opening: a TLS or WebSocket handshake, a PROXY header.

They are few at once (others wait in the accept queue), each has its time, and all of them together have a bounded
part of a turn: a handshake costs a millisecond of arithmetic. Whoever fails here is told of in one event, and no
session, no link, nothing of the broker was made for it. Knows no TLS and no packet."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from rumq.net.connection import Connection
from rumq.net.pump import Pump

WORK_SECONDS_A_TURN = 0.002
OPENING_SECONDS_MAX = 10.0
OPENINGS_MAX = 256


class Opening:
    """Stands where a connection's link will be. transport: what is opening: "tls", "websocket" or "proxy" """

    is_bus = False
    session = None
    flow = None
    who = None
    claimed = ""

    __slots__ = ("_openings", "closed", "heard", "transport", "transport_name")

    def __init__(self, openings: Openings, connection: Connection, name: str) -> None:
        self._openings = openings
        self.transport = connection
        self.transport_name = name
        self.closed = False
        self.heard = False  # it has sent something

    def receive(self, data: Any, pos: int, end: int) -> int:
        raise AssertionError("a transport that is not open has delivered bytes")

    def lost(self, why: str) -> None:
        """It failed. One that has said nothing at all, like a probe of the port, is not told of."""
        if not self.closed and self.heard:
            self._openings.event(
                "connection.refused", peer=self.transport.peer, transport=self.transport_name, why=why
            )
        self.over()

    def dismiss(self, reason: object, why: str | None = None) -> None:
        self.end(with_will=False)

    def end(self, *, with_will: bool) -> None:
        self.over()
        self.transport.close()

    def over(self) -> None:
        """Make room for the next one."""
        if not self.closed:
            self.closed = True
            self._openings.over(self)


class Openings:
    """All of one pump."""

    def __init__(
        self,
        pump: Pump,
        *,
        later: Callable[[float, Callable[[], None]], None],
        event: Callable[..., None],
        seconds_max: float = OPENING_SECONDS_MAX,
        count_max: int = OPENINGS_MAX,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """later: calls back after so many seconds; seconds_max: for a handshake; count_max: how many at once"""
        self.event = event
        self.clock = clock
        self.seconds_max = seconds_max
        self._pump = pump
        self._later = later
        self._count_max = count_max
        self._deadlines: dict[Opening, float] = {}  # the oldest first
        self._waiting: list[Callable[[], None]] = []
        self._is_timed = False
        self._turn = -1
        self._work_seconds = 0.0

    @property
    def full(self) -> bool:
        return len(self._deadlines) >= self._count_max

    def __len__(self) -> int:
        return len(self._deadlines)

    def when_there_is_room(self, call: Callable[[], None]) -> None:
        self._waiting.append(call)

    def begin(self, connection: Connection, name: str) -> None:
        """Have a connection wait for its transport, in the place of a link."""
        self.wait(Opening(self, connection, name))

    def wait(self, opening: Opening) -> None:
        connection = opening.transport
        connection.link = opening  # type: ignore[assignment]
        self._deadlines[opening] = self.clock() + self.seconds_max
        if not self._is_timed:
            self._is_timed = True
            self._later(self.seconds_max, self._look)

    def over(self, opening: Opening) -> None:
        self._deadlines.pop(opening, None)
        if self._waiting and not self.full:
            waiting, self._waiting = self._waiting, []
            for call in waiting:
                call()

    def _look(self) -> None:
        """End those whose time is over."""
        now = self.clock()
        while self._deadlines:
            opening, deadline = next(iter(self._deadlines.items()))
            if deadline > now:
                self._later(deadline - now, self._look)
                return
            self._deadlines.pop(opening)
            opening.heard = True
            self._pump.lost(opening.transport, f"not open within {self.seconds_max:g} s")
        self._is_timed = False

    # The part of a turn

    def may_work(self) -> bool:
        """Whether there is time left in this turn for a step of a handshake."""
        turn = self._pump.turns
        if turn != self._turn:
            self._turn = turn
            self._work_seconds = 0.0
        return self._work_seconds < WORK_SECONDS_A_TURN

    def worked(self, since: float) -> None:
        """A step has ended that began at `since`."""
        self._work_seconds += self.clock() - since

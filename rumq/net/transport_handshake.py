"""Connections whose transport is still opening: a TLS or WebSocket handshake, a PROXY header.

Each has its time, a short one while it says nothing. TLS handshakes are few at once: each address has its turn, and one
that has stopped in the middle gives way to those that wait. All of them together have a bounded part of a turn: a
handshake costs a millisecond of arithmetic. Whoever fails here is told of in one event, and no session, no link,
nothing of the broker was made for it. How many may be here at all is `rumq.net.pending_logins`'. Knows no TLS and no
packet."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from rumq.auth.fair_queue import UNBOUNDED, FairQueue
from rumq.auth.quota_holder import holder_of_peer
from rumq.net.connection import Connection
from rumq.net.pending_logins import State
from rumq.net.pump import Pump

WORK_SECONDS_A_TURN = 0.002
OPENING_SECONDS_MAX = 10.0
SILENT_SECONDS_MAX = 2.5
STALLED_SECONDS = 0.5  # without a byte for so long, a handshake gives way to one that waits
LOOK_SECONDS = 0.1
HANDSHAKES_MAX = 256


class TransportHandshake:
    """Stands where a connection's link will be. transport: what is opening: "tls", "websocket" or "proxy" """

    is_bus = False
    session = None
    flow = None
    who = None
    claimed = ""

    __slots__ = ("_heard", "_openings", "closed", "transport", "transport_name")

    def __init__(self, openings: TransportHandshakes, connection: Connection, name: str) -> None:
        self._openings = openings
        self.transport = connection
        self.transport_name = name
        self.closed = False
        self._heard = False

    @property
    def heard(self) -> bool:
        """Whether it has sent something; to be set whenever it has."""
        return self._heard

    @heard.setter
    def heard(self, heard: bool) -> None:
        if not self.closed:
            self._openings.heard(self, first=not self._heard)
        self._heard = heard

    def receive(self, data: Any, pos: int, end: int) -> int:
        raise AssertionError("a transport that is not open has delivered bytes")

    def lost(self, why: str) -> None:
        """It failed. One that has said nothing at all, like a probe of the port, is not told of."""
        if not self.closed and self.heard:
            self._openings.event(
                "connection.refused", peer=self.transport.peer, transport=self.transport_name, why=why
            )
        self.over()

    def turned_away(self, why: str) -> None:
        """It is to make room for others."""
        self.end(with_will=False)

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


class TransportHandshakes:
    """All of one pump."""

    def __init__(
        self,
        pump: Pump,
        *,
        later: Callable[[float, Callable[[], None]], None],
        event: Callable[..., None],
        seconds_max: float = OPENING_SECONDS_MAX,
        silent_seconds_max: float = SILENT_SECONDS_MAX,
        count_max: int = HANDSHAKES_MAX,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """later: calls back after so many seconds; seconds_max: from the first byte on; silent_seconds_max: until it

        count_max: of TLS handshakes at once"""
        self.event = event
        self.clock = clock
        self.seconds_max, self.silent_seconds_max = seconds_max, silent_seconds_max
        self._pump = pump
        self._later = later
        # The first to be over, first; until the first byte, and from then on.
        self._silent: dict[TransportHandshake, float] = {}
        self._open: dict[TransportHandshake, float] = {}
        self._next_look = float("inf")
        self._queue: FairQueue[TransportHandshake] = FairQueue(count_max, UNBOUNDED)
        self._handshakes: dict[
            TransportHandshake, float
        ] = {}  # when it last said something; the longest ago first
        self._queued: dict[TransportHandshake, None] = {}
        self._is_looking = False
        self._turn = -1
        self._work_seconds = 0.0

    def __len__(self) -> int:
        return len(self._silent) + len(self._open)

    def begin(self, connection: Connection, name: str) -> None:
        """Have a connection wait for its transport, in the place of a link."""
        self.wait(TransportHandshake(self, connection, name))

    def wait(self, opening: TransportHandshake) -> None:
        connection = opening.transport
        connection.link = opening  # type: ignore[assignment]
        self._silent[opening] = self.clock() + self.silent_seconds_max
        self._pump.newcomers.enter(connection)
        self._look_in(self.silent_seconds_max)

    def heard(self, opening: TransportHandshake, *, first: bool) -> None:
        """It has sent something. first: for the first time"""
        if first:
            self._give_time(opening)
        self.goes_on(opening)
        self._pump.newcomers.now(opening.transport, State.HEARD)

    def _give_time(self, opening: TransportHandshake) -> None:
        self._silent.pop(opening, None)
        self._open.pop(opening, None)
        self._open[opening] = self.clock() + self.seconds_max
        self._look_in(self.seconds_max)

    def goes_on(self, opening: TransportHandshake) -> None:
        """Its handshake has not stopped: there may be more of it to read."""
        if self._handshakes.pop(opening, None) is not None:
            self._handshakes[opening] = self.clock()

    def over(self, opening: TransportHandshake) -> None:
        self._silent.pop(opening, None)
        self._open.pop(opening, None)
        self._pump.newcomers.leave(opening.transport)
        if self._handshakes.pop(opening, None) is not None:
            self._queue.finished()
            self._serve_queue()

    def _look_in(self, seconds: float) -> None:
        at = self.clock() + seconds
        if at < self._next_look:
            self._next_look = at
            self._later(seconds, self._look)

    def _look(self) -> None:
        """End those whose time is over."""
        self._next_look = float("inf")
        now = self.clock()
        for deadlines, why in (
            (self._silent, f"silent for {self.silent_seconds_max:g} s"),
            (self._open, f"not open within {self.seconds_max:g} s"),
        ):
            while deadlines:
                opening, deadline = next(iter(deadlines.items()))
                if deadline > now:
                    self._look_in(deadline - now)
                    break
                opening.heard = True
                del self._open[opening]
                self._pump.lost(opening.transport, why)

    # Handshakes at once

    def may_shake_hands(self, opening: TransportHandshake) -> bool:
        """Whether it may begin; if not, its connection is read from again once it may."""
        if opening in self._handshakes:
            return True
        if opening in self._queued:
            return False
        self._queued[opening] = None
        self._give_time(opening)  # it has been read from because something came
        self._queue.put(holder_of_peer(opening.transport.peer), opening)
        self._pump.newcomers.now(opening.transport, State.OWED)
        self._serve_queue()
        self._part_with_stalled()
        return opening in self._handshakes

    def _serve_queue(self) -> None:
        while (opening := self._queue.maybe_next()) is not None:
            del self._queued[opening]
            if opening.closed:
                self._queue.finished()
                continue
            self._handshakes[opening] = self.clock()
            self._pump.newcomers.now(opening.transport, State.HEARD)
            self._pump.again(opening.transport)

    def _part_with_stalled(self) -> None:
        """While some wait: of those that have stopped in the middle, one of the address with the most gives way."""
        before = self.clock() - STALLED_SECONDS
        while self._queue.waiting:
            stalled = [each for each, heard_at in self._handshakes.items() if heard_at <= before]
            if not stalled:
                break
            counts = Counter(holder_of_peer(each.transport.peer) for each in self._handshakes)
            victim = max(stalled, key=lambda each: counts[holder_of_peer(each.transport.peer)])
            self._pump.lost(victim.transport, "stopped in the middle while others waited")
        if self._queue.waiting and not self._is_looking:
            self._is_looking = True
            self._later(LOOK_SECONDS, self._look_at_queue)

    def _look_at_queue(self) -> None:
        self._is_looking = False
        self._part_with_stalled()

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

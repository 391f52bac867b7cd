"""Transport handshakes: connections that wait for a PROXY header, for TLS or for WebSocket.

Each has a time limit, a shorter one until its first byte. The number of TLS handshakes at once is limited: addresses
take turns, one address (IPv6: /64) has half of them at most, and a handshake that has stalled or drips makes room for
one that waits. All handshakes share a bounded part of a turn, as
each costs a millisecond of CPU. One that fails is reported in one event; no session was made for it. The number of
such connections is limited by `rumq.net.pending_logins`."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable

from rumq.auth.fair_queue import UNBOUNDED, FairQueue
from rumq.auth.quota_holder import holder_of_peer
from rumq.net.connection import Connection
from rumq.net.pending_logins import LoginStage
from rumq.net.pump import Pump
from rumq.net.transport.handshake_deadlines import HandshakeDeadlines

WORK_SECONDS_A_TURN = 0.002
HANDSHAKE_SECONDS_MAX = 10.0
SILENT_SECONDS_MAX = 2.5
STALLED_SECONDS = 0.5  # after so long without a byte a handshake makes room for one that waits
SLOW_SECONDS = 1.0  # after so long in all, too, however steadily its bytes drip
SHARE = 2  # one address has at most this part of all handshakes that run
CHECK_SECONDS = 0.1
HANDSHAKES_MAX = 256


class TransportHandshake:
    """The handler of a connection until its layers are open. transport_name: "tls", "websocket", "mqtt" or "proxy" """

    is_bus = False
    client_id = None

    __slots__ = ("_handshakes", "_has_sent", "closed", "transport", "transport_name")

    def __init__(self, handshakes: TransportHandshakes, connection: Connection, name: str) -> None:
        self._handshakes = handshakes
        self.transport = connection
        self.transport_name = name
        self.closed = False
        self._has_sent = False

    def progress(self) -> None:
        """Bytes of the client have come."""
        if not self.closed:
            self._handshakes.progress(self, first=not self._has_sent)
        self._has_sent = True

    def receive(self, data: bytearray, pos: int, end: int) -> int:
        raise AssertionError("a transport that is not open has delivered bytes")

    def drained(self) -> None: ...

    def lost(self, why: str) -> None:
        """It failed. One that has sent nothing, like a probe of the port, is not reported."""
        if not self.closed and self._has_sent:
            self._handshakes.event(
                "connection.refused", peer=self.transport.peer, transport=self.transport_name, why=why
            )
        self.finish()

    def turned_away(self, why: str) -> None:
        """Make room for others."""
        self.end(with_will=False)

    def dismiss(self, reason: object, why: str | None = None) -> None:
        self.end(with_will=False)

    def end(self, *, with_will: bool) -> None:
        self.finish()
        self.transport.close()

    def finish(self) -> None:
        """It has succeeded or failed."""
        if not self.closed:
            self.closed = True
            self._handshakes.finish(self)


class TransportHandshakes:
    """All handshakes of one pump."""

    def __init__(
        self,
        pump: Pump,
        *,
        later: Callable[[float, Callable[[], None]], None],
        event: Callable[..., None],
        seconds_max: float = HANDSHAKE_SECONDS_MAX,
        silent_seconds_max: float = SILENT_SECONDS_MAX,
        count_max: int = HANDSHAKES_MAX,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """later: calls back after so many seconds; seconds_max: from the first byte on

        silent_seconds_max: until the first byte; count_max: of TLS handshakes at once"""
        self.event = event
        self.clock = clock
        self._pump = pump
        self._later = later
        self._deadlines: HandshakeDeadlines[TransportHandshake] = HandshakeDeadlines(
            clock, later, self._overdue, seconds_max=seconds_max, silent_seconds_max=silent_seconds_max
        )
        self._queue: FairQueue[TransportHandshake] = FairQueue(count_max, UNBOUNDED)
        self._running: dict[TransportHandshake, float] = {}  # -> when its last byte came, the earliest first
        self._began: dict[TransportHandshake, float] = {}  # when each that runs has begun
        self._held_max = max(1, count_max // SHARE)
        self._running_of: Counter[str] = Counter()  # handshakes that wait or run, by address
        # by address: handshakes that wait because it has its share
        self._over: dict[str, deque[TransportHandshake]] = {}
        self._queued: dict[TransportHandshake, None] = {}
        self._is_checking = False
        self._turn = -1
        self._work_seconds = 0.0

    def __len__(self) -> int:
        return len(self._deadlines)

    def start(self, connection: Connection, name: str) -> TransportHandshake:
        """Have a connection wait for its layers. name: of the lowest one"""
        handshake = TransportHandshake(self, connection, name)
        self.add(handshake)
        return handshake

    def add(self, handshake: TransportHandshake) -> None:
        connection = handshake.transport
        connection.link = handshake
        self._pump.pending_logins.add(connection)
        self._deadlines.begin(handshake)

    def progress(self, handshake: TransportHandshake, *, first: bool) -> None:
        """Bytes of its client have come. first: for the first time"""
        if first:
            self._deadlines.give_time(handshake)
        self.keep_running(handshake)
        self._pump.pending_logins.set_state(handshake.transport, LoginStage.HEARD)

    def keep_running(self, handshake: TransportHandshake) -> None:
        """It has not stalled: there may be more of it to read."""
        if self._running.pop(handshake, None) is not None:
            self._running[handshake] = self.clock()

    def finish(self, handshake: TransportHandshake) -> None:
        self._deadlines.drop(handshake)
        self._pump.pending_logins.discard(handshake.transport)
        if self._running.pop(handshake, None) is not None:
            del self._began[handshake]
            self._queue.finished()
            self._leave_share(handshake)
            self._serve_queue()

    def _overdue(self, handshake: TransportHandshake, why: str) -> None:
        """End one past its deadline."""
        handshake.progress()
        self._deadlines.drop(handshake)
        self._pump.lost(handshake.transport, why)

    # Limited concurrency

    def may_run(self, handshake: TransportHandshake) -> bool:
        """Whether a TLS handshake may run now; if not, its connection is read from once it may."""
        if handshake in self._running:
            return True
        if handshake in self._queued:
            return False
        self._queued[handshake] = None
        self._deadlines.give_time(handshake)  # it was read from because bytes came
        self._pump.pending_logins.set_state(handshake.transport, LoginStage.OWED)
        self._take_share(handshake)
        self._serve_queue()
        self._make_room()
        return handshake in self._running

    def _take_share(self, handshake: TransportHandshake) -> None:
        """Into the queue; behind its address's others if that has its share."""
        holder = holder_of_peer(handshake.transport.peer)
        if self._running_of[holder] >= self._held_max:
            self._over.setdefault(holder, deque()).append(handshake)
            return
        self._running_of[holder] += 1
        self._queue.put(holder, handshake)

    def _leave_share(self, handshake: TransportHandshake) -> None:
        """It has ended: the next one of its address comes into the queue."""
        holder = holder_of_peer(handshake.transport.peer)
        self._running_of[holder] -= 1
        if not self._running_of[holder]:
            del self._running_of[holder]
        over = self._over.get(holder)
        while over:
            following = over.popleft()
            if not over:
                del self._over[holder]
            if following.closed:
                self._queued.pop(following, None)
                continue
            self._running_of[holder] += 1
            self._queue.put(holder, following)
            break

    def _serve_queue(self) -> None:
        while (handshake := self._queue.maybe_next()) is not None:
            del self._queued[handshake]
            if handshake.closed:
                self._queue.finished()
                self._leave_share(handshake)
                continue
            self._running[handshake] = self._began[handshake] = self.clock()
            self._pump.pending_logins.set_state(handshake.transport, LoginStage.HEARD)
            self._pump.read_next_turn(handshake.transport)

    def _make_room(self) -> None:
        """While some wait: end those that have stalled or drip. Of all, one of the address that has the most of them;
        for those over the share of their address, one of that address."""
        while self._queue.waiting and (victim := self._maybe_slow()) is not None:
            self._pump.lost(victim.transport, "stopped or dripped in the middle while others waited")
        for holder in list(self._over):
            while holder in self._over and (victim := self._maybe_slow(holder)) is not None:
                self._pump.lost(victim.transport, "stopped or dripped in the middle while others waited")
        if (self._queue.waiting or self._over) and not self._is_checking:
            self._is_checking = True
            self._later(CHECK_SECONDS, self._check_queue)

    def _maybe_slow(self, holder: str = "") -> TransportHandshake | None:
        """One that may be ended for those that wait. holder: of this address alone"""
        now = self.clock()
        slow = [
            each
            for each, heard_at in self._running.items()
            if (heard_at <= now - STALLED_SECONDS or self._began[each] <= now - SLOW_SECONDS)
            and (not holder or holder_of_peer(each.transport.peer) == holder)
        ]
        return max(slow, key=lambda each: self._running_of[holder_of_peer(each.transport.peer)], default=None)

    def _check_queue(self) -> None:
        self._is_checking = False
        self._make_room()

    # CPU time in a turn

    def has_time(self) -> bool:
        """Whether there is CPU time left in this turn for a step of a handshake."""
        turn = self._pump.turns
        if turn != self._turn:
            self._turn = turn
            self._work_seconds = 0.0
        return self._work_seconds < WORK_SECONDS_A_TURN

    def count_step(self, since: float) -> None:
        """A step that began at `since` has ended."""
        self._work_seconds += self.clock() - since

"""Pending logins: connections without a login, bounded in number, per address and in the bytes kept of them.

Anybody can open one. Beyond a bound, a connection of the holder with the most is closed (a holder is an address; for
IPv6 a /64), the one that has kept the broker waiting longest. Clients that have logged in are never closed for this.
Every operation costs O(1), except shedding by bytes: O(holders). docs/guides/security.md"""
# compiled: warm

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum

from rumq.auth.quota_holder import holder_of_peer
from rumq.net.connection import Connection

ANY = 1 << 60
TURNS = 3  # a new connection is not shed before: its bytes may not have been read yet


class LoginStage(IntEnum):
    SILENT = 0  # nothing of it has been read
    HEARD = 1  # it has sent something, and has to send more
    OWED = 2  # it waits for the broker: for its turn, a thread, or the delay of a refusal


class Holder:
    """The connections of one address. waiting: those that the broker waits for, SILENT and HEARD"""

    __slots__ = ("bytes", "connections", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.bytes = 0
        self.connections: tuple[dict[Connection, None], ...] = ({}, {}, {})  # by LoginStage, the earliest first

    @property
    def waiting(self) -> int:
        return len(self.connections[0]) + len(self.connections[1])


class Ranking:
    """Holders by their number of connections; O(1), as a count changes by one."""

    def __init__(self) -> None:
        self._by_count: dict[int, dict[Holder, None]] = {}
        self._most = 0
        self.total = 0

    def move(self, holder: Holder, before: int, after: int) -> None:
        self.total += after - before
        if before:
            del self._by_count[before][holder]
            if not self._by_count[before]:
                del self._by_count[before]
        if after:
            self._by_count.setdefault(after, {})[holder] = None
            self._most = max(self._most, after)
        while self._most and self._most not in self._by_count:
            self._most -= 1

    def maybe_largest(self) -> Holder | None:
        return next(iter(self._by_count[self._most])) if self._most else None


class PendingLogins:
    """All pending logins of one pump; without bounds until `set_limits`.

    on_shed: called with a holder and the total number shed, at the first, second, fourth, eighth ..."""

    def __init__(self, end: Callable[[Connection, str], None], turn: Callable[[], int]) -> None:
        """end: ends a connection at the end of the turn, for a reason; turn: the number of the pump's turn"""
        self.count_max = self.holder_count_max = self.bytes_max = ANY
        self.shed = 0  # connections that were closed to make room, so far
        self.bytes = 0
        self.on_shed: Callable[[str, int], None] = lambda holder, shed: None
        self._end, self._turn = end, turn
        # -> (holder, stage, bytes that are kept of it)
        self._pending: dict[Connection, tuple[Holder, LoginStage, int]] = {}
        self._closing: dict[Connection, None] = {}  # connections that were shed and are not closed yet
        self._came: dict[Connection, int] = {}  # SILENT connection -> the turn in which it came
        self._holders: dict[str, Holder] = {}
        self._by_waiting, self._by_owed = Ranking(), Ranking()

    def set_limits(self, count_max: int, holder_count_max: int, bytes_max: int) -> None:
        """count_max, holder_count_max: of SILENT and HEARD connections, altogether and of one holder; 0: any

        bytes_max: kept of all connections together; 0: any"""
        self.count_max, self.holder_count_max = count_max or ANY, holder_count_max or ANY
        self.bytes_max = bytes_max or ANY

    def __len__(self) -> int:
        return len(self._pending) + len(self._closing)

    def __contains__(self, connection: Connection) -> bool:
        return connection in self._pending

    def add(self, connection: Connection) -> None:
        """Count a new connection; others may be shed for it."""
        if connection in self._pending:
            return
        name = holder_of_peer(connection.peer)
        holder = self._holders.get(name)
        if holder is None:
            holder = self._holders[name] = Holder(name)
        self._pending[connection] = holder, LoginStage.SILENT, 0
        self._came[connection] = self._turn()
        self._count_in(connection, holder, LoginStage.SILENT)
        while holder.waiting > self.holder_count_max:
            if not self._shed_waiting(holder, connection, f"too many from {name} have not logged in"):
                break
        while self._by_waiting.total > self.count_max:
            largest = self._by_waiting.maybe_largest()
            if largest is None or not self._shed_waiting(largest, connection, "too many have not logged in"):
                break

    def discard(self, connection: Connection) -> None:
        """It has logged in, or is closed."""
        self._closing.pop(connection, None)
        found = self._pending.pop(connection, None)
        if found is None:
            return
        holder, state, size = found
        self._count_out(connection, holder, state)
        holder.bytes -= size
        self.bytes -= size
        if not any(holder.connections):
            del self._holders[holder.name]

    def set_state(self, connection: Connection, state: LoginStage) -> None:
        """Change the state of a connection; nothing if it has logged in."""
        found = self._pending.get(connection)
        if found is None:
            return
        holder, before, size = found
        self._count_out(connection, holder, before)
        self._count_in(connection, holder, state)
        self._pending[connection] = holder, state, size

    def keep_bytes(self, connection: Connection, size: int) -> bool:
        """So many bytes are kept of it now; others may be shed for that. False: it has to be closed itself"""
        found = self._pending.get(connection)
        if found is None:
            return True
        holder, state, before = found
        self._pending[connection] = holder, state, size
        holder.bytes += size - before
        self.bytes += size - before
        while self.bytes > self.bytes_max:
            largest = max(self._holders.values(), key=lambda each: each.bytes)
            victim = self._oldest_with_bytes(largest, connection)
            if victim is connection:
                return False
            self._shed(victim, "too much is kept of connections that have not logged in")
        return True

    def make_room(self, why: str) -> bool:
        """Shed one for a new connection. False: there is none, or none that has been read from yet"""
        largest = self._by_waiting.maybe_largest()
        if largest is not None and self._shed_waiting(largest, None, why):
            return True
        largest = self._by_owed.maybe_largest()
        if largest is None:
            return False
        self._shed(next(iter(largest.connections[LoginStage.OWED])), why)
        return True

    def _shed_waiting(self, holder: Holder, newest: Connection | None, why: str) -> bool:
        """newest: is not shed"""
        silent, heard, _ = holder.connections
        oldest = next(iter(silent), newest)
        if oldest is None or oldest is newest or self._turn() - self._came[oldest] < TURNS:
            oldest = next(iter(heard), None)
            if oldest is None:
                return False
        self._shed(oldest, why)
        return True

    def _shed(self, connection: Connection, why: str) -> None:
        self.shed += 1
        if self.shed & (self.shed - 1) == 0:
            self.on_shed(self._pending[connection][0].name, self.shed)
        self.discard(connection)
        self._closing[connection] = None
        self._end(connection, why)

    def _oldest_with_bytes(self, holder: Holder, default: Connection) -> Connection:
        """The connection with kept bytes that has kept the broker waiting longest; `default` if there is no other."""
        for connections in holder.connections:
            for connection in connections:
                if connection is not default and self._pending[connection][2]:
                    return connection
        return default

    def _count_in(self, connection: Connection, holder: Holder, state: LoginStage) -> None:
        self._count(holder, state, 1)
        holder.connections[state][connection] = None

    def _count_out(self, connection: Connection, holder: Holder, state: LoginStage) -> None:
        self._count(holder, state, -1)
        del holder.connections[state][connection]
        if state is LoginStage.SILENT:
            del self._came[connection]

    def _count(self, holder: Holder, state: LoginStage, change: int) -> None:
        if state is LoginStage.OWED:
            count = len(holder.connections[LoginStage.OWED])
            self._by_owed.move(holder, count, count + change)
        else:
            self._by_waiting.move(holder, holder.waiting, holder.waiting + change)

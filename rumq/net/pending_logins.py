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


SILENT, HEARD, OWED = 0, 1, 2  # of LoginStage, to compare without a look-up in it


class Holder:
    """The connections of one address, by LoginStage, the earliest first. bytes: that are kept of them"""

    __slots__ = ("bytes", "heard", "name", "owed", "silent")

    def __init__(self, name: str) -> None:
        self.name = name
        self.bytes = 0
        self.silent: dict[Connection, None] = {}
        self.heard: dict[Connection, None] = {}
        self.owed: dict[Connection, None] = {}

    def at(self, stage: int) -> dict[Connection, None]:
        """Those at one stage."""
        if stage == OWED:
            return self.owed
        return self.heard if stage == HEARD else self.silent

    def waiting(self) -> int:
        """How many the broker waits for: SILENT and HEARD."""
        return len(self.silent) + len(self.heard)


class PendingLogin:
    """What is known of one connection. size: bytes that are kept of it; came: the turn in which it came"""

    __slots__ = ("came", "holder", "size", "stage")

    def __init__(self, holder: Holder, came: int) -> None:
        self.holder, self.came = holder, came
        self.stage: int = SILENT
        self.size = 0


class Ranking:
    """Holders by their number of connections; O(1), as a count changes by one."""

    __slots__ = ("_by_count", "_most", "total")

    def __init__(self) -> None:
        self._by_count: list[dict[Holder, None]] = [{}]  # by the count, up to one above the most that there were
        self._most = 0
        self.total = 0

    def move(self, holder: Holder, before: int, after: int) -> None:
        by_count = self._by_count
        self.total += after - before
        if before:
            del by_count[before][holder]
        if after:
            if after == len(by_count):
                by_count.append({})
            by_count[after][holder] = None
            self._most = max(self._most, after)
        while self._most and not by_count[self._most]:
            self._most -= 1
        if len(by_count) > self._most + 2:
            by_count.pop()

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
        self._pending: dict[Connection, PendingLogin] = {}
        self._closing: dict[Connection, None] = {}  # connections that were shed and are not closed yet
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
        self._pending[connection] = PendingLogin(holder, self._turn())
        self._count_in(connection, holder, SILENT)
        while holder.waiting() > self.holder_count_max:
            if not self._shed_waiting(holder, connection, f"too many from {name} have not logged in"):
                break
        while self._by_waiting.total > self.count_max:
            largest = self._by_waiting.maybe_largest()
            if largest is None or not self._shed_waiting(largest, connection, "too many have not logged in"):
                break

    def discard(self, connection: Connection) -> None:
        """It has logged in, or is closed."""
        if self._closing:
            self._closing.pop(connection, None)
        found = self._pending.pop(connection, None)
        if found is None:
            return
        holder = found.holder
        self._count_out(connection, holder, found.stage)
        holder.bytes -= found.size
        self.bytes -= found.size
        if not (holder.silent or holder.heard or holder.owed):
            del self._holders[holder.name]

    def set_state(self, connection: Connection, state: int) -> None:
        """Change the state of a connection, a LoginStage; nothing if it has logged in."""
        found = self._pending.get(connection)
        if found is None:
            return
        holder, before = found.holder, found.stage
        found.stage = state
        if before != OWED and state != OWED:  # as many as before are waited for
            del holder.at(before)[connection]
            holder.at(state)[connection] = None
            return
        self._count_out(connection, holder, before)
        self._count_in(connection, holder, state)

    def keep_bytes(self, connection: Connection, size: int) -> bool:
        """So many bytes are kept of it now; others may be shed for that. False: it has to be closed itself"""
        found = self._pending.get(connection)
        if found is None:
            return True
        more = size - found.size
        found.size = size
        found.holder.bytes += more
        self.bytes += more
        while self.bytes > self.bytes_max:
            largest = max(self._holders.values(), key=bytes_of)
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
        self._shed(next(iter(largest.owed)), why)
        return True

    def _shed_waiting(self, holder: Holder, newest: Connection | None, why: str) -> bool:
        """newest: is not shed"""
        oldest = next(iter(holder.silent), newest)
        if oldest is None or oldest is newest or self._turn() - self._pending[oldest].came < TURNS:
            oldest = next(iter(holder.heard), None)
            if oldest is None:
                return False
        self._shed(oldest, why)
        return True

    def _shed(self, connection: Connection, why: str) -> None:
        self.shed += 1
        if self.shed & (self.shed - 1) == 0:
            self.on_shed(self._pending[connection].holder.name, self.shed)
        self.discard(connection)
        self._closing[connection] = None
        self._end(connection, why)

    def _oldest_with_bytes(self, holder: Holder, default: Connection) -> Connection:
        """The connection with kept bytes that has kept the broker waiting longest; `default` if there is no other."""
        for connections in (holder.silent, holder.heard, holder.owed):
            for connection in connections:
                if connection is not default and self._pending[connection].size:
                    return connection
        return default

    def _count_in(self, connection: Connection, holder: Holder, stage: int) -> None:
        if stage == OWED:
            count = len(holder.owed)
            self._by_owed.move(holder, count, count + 1)
        else:
            count = holder.waiting()
            self._by_waiting.move(holder, count, count + 1)
        holder.at(stage)[connection] = None

    def _count_out(self, connection: Connection, holder: Holder, stage: int) -> None:
        if stage == OWED:
            count = len(holder.owed)
            self._by_owed.move(holder, count, count - 1)
        else:
            count = holder.waiting()
            self._by_waiting.move(holder, count, count - 1)
        del holder.at(stage)[connection]


def bytes_of(holder: Holder) -> int:
    return holder.bytes

"""Connections that have not logged in: how many, from where, and how much of theirs is kept.

Anybody can open one, so they are what gives way: when there are too many, or too much is kept of them, those of the
holder with the most go (a holder is an address; of IPv6 a /64), and of these the one that has kept the broker waiting
for longest. Who has logged in is never touched. Every operation costs O(1), but for shedding by bytes, which looks at
each holder. Knows no packet; docs/security.md."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Any

from rumq.auth.quota_holder import holder_of_peer

ANY = 1 << 60
TURNS = 3  # until then, what it has sent may not have been read


class State(IntEnum):
    SILENT = 0  # nothing of it has been read
    HEARD = 1  # it has sent something, and has to send more
    OWED = 2  # it waits for us: for its turn, a thread, or the delay of a refusal


class Holder:
    """What one address has. waiting: for the client, SILENT and HEARD"""

    __slots__ = ("bytes", "connections", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.bytes = 0
        self.connections: tuple[dict[Any, None], ...] = ({}, {}, {})  # by State; who got there first, first

    @property
    def waiting(self) -> int:
        return len(self.connections[0]) + len(self.connections[1])


class Ranking:
    """Holders by how many they have; the largest is known at once, for a count changes by one."""

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
    """All of one pump. `limit` sets its bounds; without it there are none. tell: of whom some had to go, and how many
    have altogether; called for the first, second, fourth, eighth ..."""

    def __init__(self, end: Callable[[Any, str], None], turn: Callable[[], int]) -> None:
        """end: ends a connection, soon; with why. turn: which one of the pump's this is"""
        self.count_max = self.holder_count_max = self.bytes_max = ANY
        self.shed = 0  # how many had to go
        self.bytes = 0
        self.tell: Callable[[str, int], None] = lambda holder, shed: None
        self._end, self._turn = end, turn
        self._of: dict[
            Any, tuple[Holder, State, int]
        ] = {}  # connection -> where it is counted, and its bytes
        self._going: dict[Any, None] = {}  # had to go, and are not gone yet
        self._came: dict[Any, int] = {}  # connection that is SILENT -> the turn in which it came
        self._holders: dict[str, Holder] = {}
        self._waiting, self._owed = Ranking(), Ranking()

    def limit(self, count_max: int, holder_count_max: int, bytes_max: int) -> None:
        """count_max, holder_count_max: of those that wait for their client, of all and of one holder; 0: any

        bytes_max: kept of all together"""
        self.count_max, self.holder_count_max = count_max or ANY, holder_count_max or ANY
        self.bytes_max = bytes_max or ANY

    def __len__(self) -> int:
        return len(self._of) + len(self._going)

    def __contains__(self, connection: Any) -> bool:
        return connection in self._of

    def enter(self, connection: Any) -> None:
        """Somebody has come. Others may have to go for it."""
        if connection in self._of:
            return
        name = holder_of_peer(connection.peer)
        holder = self._holders.get(name)
        if holder is None:
            holder = self._holders[name] = Holder(name)
        self._of[connection] = holder, State.SILENT, 0
        self._came[connection] = self._turn()
        self._put(connection, holder, State.SILENT)
        while holder.waiting > self.holder_count_max:
            if not self._shed_waiting(holder, connection, f"too many from {name} have not logged in"):
                break
        while self._waiting.total > self.count_max:
            largest = self._waiting.maybe_largest()
            if largest is None or not self._shed_waiting(largest, connection, "too many have not logged in"):
                break

    def leave(self, connection: Any) -> None:
        """It has logged in, or has gone."""
        self._going.pop(connection, None)
        found = self._of.pop(connection, None)
        if found is None:
            return
        holder, state, size = found
        self._take(connection, holder, state)
        holder.bytes -= size
        self.bytes -= size
        if not any(holder.connections):
            del self._holders[holder.name]

    def now(self, connection: Any, state: State) -> None:
        """It has sent something, waits for us, or has to send more again."""
        found = self._of.get(connection)
        if found is None:
            return
        holder, before, size = found
        self._take(connection, holder, before)
        self._put(connection, holder, state)
        self._of[connection] = holder, state, size

    def keeps(self, connection: Any, size: int) -> bool:
        """So many bytes of it are kept now. Others may have to go for that; False: it has to go itself."""
        found = self._of.get(connection)
        if found is None:
            return True
        holder, state, before = found
        self._of[connection] = holder, state, size
        holder.bytes += size - before
        self.bytes += size - before
        while self.bytes > self.bytes_max:
            largest = max(self._holders.values(), key=lambda each: each.bytes)
            victim = self._kept_longest(largest, connection)
            if victim is connection:
                return False
            self._shed(victim, "too much is kept of connections that have not logged in")
        return True

    def make_room(self, why: str) -> bool:
        """End one, for one that is about to come. False: there is none, or none that has been read from yet."""
        largest = self._waiting.maybe_largest()
        if largest is not None and self._shed_waiting(largest, None, why):
            return True
        largest = self._owed.maybe_largest()
        if largest is None:
            return False
        self._shed(next(iter(largest.connections[State.OWED])), why)
        return True

    def _shed_waiting(self, holder: Holder, newest: Any, why: str) -> bool:
        """newest: is not the one that goes"""
        silent, heard, _ = holder.connections
        oldest = next(iter(silent), newest)
        if oldest is newest or self._turn() - self._came[oldest] < TURNS:
            oldest = next(iter(heard), None)
            if oldest is None:
                return False
        self._shed(oldest, why)
        return True

    def _shed(self, connection: Any, why: str) -> None:
        self.shed += 1
        if self.shed & (self.shed - 1) == 0:
            self.tell(self._of[connection][0].name, self.shed)
        self.leave(connection)
        self._going[connection] = None
        self._end(connection, why)

    def _kept_longest(self, holder: Holder, but: Any) -> Any:
        """Of those of which something is kept, who has kept the broker waiting for longest; `but` if there is none."""
        for connections in holder.connections:
            for connection in connections:
                if connection is not but and self._of[connection][2]:
                    return connection
        return but

    def _put(self, connection: Any, holder: Holder, state: State) -> None:
        self._count(holder, state, 1)
        holder.connections[state][connection] = None

    def _take(self, connection: Any, holder: Holder, state: State) -> None:
        self._count(holder, state, -1)
        del holder.connections[state][connection]
        if state is State.SILENT:
            del self._came[connection]

    def _count(self, holder: Holder, state: State, change: int) -> None:
        if state is State.OWED:
            count = len(holder.connections[State.OWED])
            self._owed.move(holder, count, count + change)
        else:
            self._waiting.move(holder, holder.waiting, holder.waiting + change)

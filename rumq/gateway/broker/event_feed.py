"""Events of the whole broker for those who poll: of the shards, asked while somebody polls, and of the gateway.

Polls are answered from one ring here: a thousand cost the shards no more than one. docs/reference/gateway.md,
"Events"."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import trio

from rumq.admin import answers as a
from rumq.admin import requests as q
from rumq.admin.event_cursor import row_of
from rumq.admin.operations import OPERATIONS, Operation
from rumq.admin.rows import EventRow
from rumq.errors import RumqError
from rumq.events.event_ring import EventRing, FoundEvents, KeptEvent, wants

LOOK_SECONDS = 0.5
WAITING_MAX = 200  # polls that wait at once
EVENTS_MAX, BYTES_MAX = 5_000, 4 << 20
A_LOOK_MAX = 1_000  # events of the shards in one answer
CURSOR = re.compile(r"(\d{1,18})\.(\d{1,18})\.(\d{1,18})")
Ask = Callable[[Operation, q.Request], Awaitable[a.Answer]]


class TooManyWait(RumqError):
    """So many polls wait already."""


class SentEvent(msgspec.Struct):
    """By `rumq.events.event_sender`."""

    source: str
    time_us: int
    line: dict[str, Any]


class EventFeed:
    """own: the ring of this process"""

    def __init__(self, ask: Ask, own: EventRing) -> None:
        self._ask, self._own = ask, own
        self._ring = EventRing(own.run, EVENTS_MAX, BYTES_MAX)
        self._place: str | None = None  # of the shards
        self._own_next = own.first
        self._losses: deque[tuple[int, int]] = deque(maxlen=100)  # number of the next event then, how many
        self._looking = trio.Lock()
        self._looked_at = float("-inf")
        self._sent: deque[EventRow] = deque(maxlen=A_LOOK_MAX)  # by other processes
        self._waiting = 0
        self._newest_us = 0

    async def answer(self, asked: q.Events, wait: float) -> a.Events:
        """Events after the cursor; waits for one if there is none. raises: TooManyWait, ValueError for the cursor"""
        wanted = wants(asked.level, asked.event)
        await self._refresh()  # first: a cursor may be of an earlier run of the gateway
        number = self._number(asked.after)
        found = self._matching_events(number, asked.limit, wanted)
        if number is None or found.events or found.lost or not wait:
            return self._answer(found, number)
        if self._waiting >= WAITING_MAX:
            raise TooManyWait(f"{WAITING_MAX} requests wait for events already")
        self._waiting += 1
        try:
            with trio.move_on_after(wait):
                while not found.events and not found.lost:
                    await trio.sleep(LOOK_SECONDS)
                    await self._refresh()
                    found = self._matching_events(number, asked.limit, wanted)
        finally:
            self._waiting -= 1
        return self._answer(found, number)

    def _matching_events(self, number: int | None, limit: int, wanted: Callable[[KeptEvent], bool]) -> FoundEvents:
        return self._ring.newest(limit, wanted) if number is None else self._ring.since(number, limit, wanted)

    async def _refresh(self) -> None:
        async with self._looking:  # who comes meanwhile gets the same
            if trio.current_time() - self._looked_at >= LOOK_SECONDS:
                await self._look()
                self._looked_at = trio.current_time()

    async def _look(self) -> None:
        """Take over what was told since. Shards that are away are asked again at the next look"""
        rows = [*self._of_this_process(), *self._sent]
        self._sent.clear()
        try:
            while True:
                asked = q.Events(after=self._place, limit=A_LOOK_MAX)
                found = await self._ask(OPERATIONS["events"], asked)
                assert isinstance(found, a.Events)
                is_first, self._place = self._place is None, found.cursor
                rows += found.events
                if found.lost and not is_first:
                    self._losses.append((self._ring.next, found.lost))
                if is_first or len(found.events) < A_LOOK_MAX:
                    break
        except (RumqError, ValueError):
            pass
        finally:
            for row in sorted(rows, key=lambda row: row.time_us):
                self._ring.add(row.time_us, row.level, row.event, msgspec.json.encode(row))
                self._newest_us = row.time_us

    def take(self, datagram: bytes) -> None:
        """An event that another process has sent; what is none is left out."""
        try:
            said = msgspec.json.decode(datagram, type=SentEvent)
            self._sent.append(row_of(said.line, "", said.time_us, said.source, None))
        except (msgspec.DecodeError, KeyError):
            pass

    def _of_this_process(self) -> list[EventRow]:
        found = self._own.since(self._own_next, A_LOOK_MAX, lambda _: True)
        self._own_next = found.next
        return [row_of(msgspec.json.decode(each.line), "", each.time_us, "gateway", None) for each in found.events]

    def _number(self, cursor: str | None) -> int | None:
        """The number after a cursor; one of an earlier run of this process is found by its time. raises: ValueError"""
        if cursor is None:
            return None
        matched = CURSOR.fullmatch(cursor)
        if matched is None:
            raise ValueError("the cursor is none that an answer has given")
        run, number, time_us = map(int, matched.groups())
        if run == self._ring.run:
            return min(number + 1, self._ring.next)
        later = self._ring.since(0, 1, lambda each: each.time_us > time_us).events
        return later[0].number if later else self._ring.next

    def _answer(self, found: FoundEvents, number: int | None) -> a.Events:
        rows = []
        for each in found.events:
            row = msgspec.json.decode(each.line, type=EventRow)
            row.cursor = self._cursor(each.number, each.time_us)
            rows.append(row)
        is_cut = found.next < self._ring.next
        last_us = rows[-1].time_us if is_cut else self._newest_us
        lost = 0
        if number is not None:
            lost = found.lost + sum(count for at, count in self._losses if number <= at < found.next)
        return a.Events(events=rows, cursor=self._cursor(found.next - 1, last_us), lost=lost)

    def _cursor(self, number: int, time_us: int) -> str:
        return f"{self._ring.run}.{number}.{time_us}"

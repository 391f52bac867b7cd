"""Clients that have gone silent: no CONNECT in time, no packet within one and a half keep alives. MQTT 5.0, 3.1.2.10.

One heap of deadlines, looked at now and then; a client that spoke in between is put back. Each link has one deadline at
most, and what a link that has ended leaves in the heap is swept away with others: it holds no link, and there are never
more such than links. Time is an argument."""

from __future__ import annotations

import heapq
from typing import Any

from rumq.mqtt.reasons import Reason
from rumq.session.link import Link

LOOK_SECONDS = 0.25
HOLD_SECONDS_MAX = 60.0
SWEEP_MIN = 1024  # what links have left is swept away when it is so much, and more than is in use


class Watch:
    def __init__(self) -> None:
        self._deadlines: list[list[Any]] = []  # [deadline, number, link or None]
        self._count = 0
        self._left = 0  # how many have no link any more
        self.next_look = 0.0

    def __len__(self) -> int:
        """How many entries there are, those without a link too."""
        return len(self._deadlines)

    def add(self, link: Link, deadline: float) -> None:
        """Look at a link at its deadline, or at one that it has already if that is sooner: then it gets the next."""
        known = link.watched
        if known is not None:
            if known[0] <= deadline:
                return
            self._leave(known)
        self._count += 1
        entry = link.watched = [deadline, self._count, link]
        heapq.heappush(self._deadlines, entry)

    def cancel(self, link: Link) -> None:
        """The link has ended."""
        known, link.watched = link.watched, None
        if known is not None:
            self._leave(known)

    def _leave(self, entry: list[Any]) -> None:
        entry[2] = None
        self._left += 1
        if self._left >= SWEEP_MIN and 2 * self._left > len(self._deadlines):
            self._deadlines = [each for each in self._deadlines if each[2] is not None]
            heapq.heapify(self._deadlines)
            self._left = 0

    def look(self, house: Any) -> None:
        """End the connections whose time is up."""
        now: float = house.monotonic
        self.next_look = now + LOOK_SECONDS
        while self._deadlines and self._deadlines[0][0] <= now:
            link = heapq.heappop(self._deadlines)[2]
            if link is None:
                self._left -= 1
                continue
            link.watched = None
            try:
                self._look_at(link, house, now)
            except Exception:
                house.crashed(link.transport)

    def _look_at(self, link: Link, house: Any, now: float) -> None:
        if link.closed:
            return
        if link.session is None:
            why = "no CONNECT in time" if link.entering is None else "not authenticated in time"
            house.event("client.refused", link, reason=0x8D, why=why)
            link.dismiss(Reason.KEEP_ALIVE_TIMEOUT)
            return
        if link.expires_at is not None:
            if link.expires_at <= now:
                house.event("client.refused", link, reason=0x87, why="what it came in by has expired")
                link.dismiss(Reason.NOT_AUTHORIZED, "what you came in by has expired")
                return
            if not link.keep_alive:
                self.add(link, min(link.expires_at, now + HOLD_SECONDS_MAX))
                return
        if not link.keep_alive:
            return
        deadline = link.heard_at + 1.5 * link.keep_alive
        if link.expires_at is not None:
            deadline = min(deadline, link.expires_at)
        if link.heard_at + 1.5 * link.keep_alive <= now:
            house.event("client.lost", link, why="keep alive ran out")
            link.dismiss(Reason.KEEP_ALIVE_TIMEOUT, "no packet within one and a half keep alive intervals")
        else:
            self.add(link, deadline)

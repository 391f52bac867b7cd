"""Clients that have gone silent: no CONNECT in time, no packet within one and a half keep alives. MQTT 5.0, 3.1.2.10.

One heap of deadlines, looked at now and then; a client that spoke in between is put back. Time is an argument."""

from __future__ import annotations

import heapq
from typing import Any

from rumq.mqtt.reasons import Reason
from rumq.session.link import Link

LOOK_SECONDS = 0.25
HOLD_SECONDS_MAX = 60.0  # a link that has ended is kept no longer


class Watch:
    def __init__(self) -> None:
        self._deadlines: list[tuple[float, int, Link]] = []
        self._count = 0
        self.next_look = 0.0

    def add(self, link: Link, deadline: float) -> None:
        """Look at a link at its deadline; what is later than it can be held for nothing is looked at in between."""
        self._count += 1
        heapq.heappush(self._deadlines, (deadline, self._count, link))

    def look(self, house: Any) -> None:
        """End the connections whose time is up."""
        now: float = house.monotonic
        self.next_look = now + LOOK_SECONDS
        heap = self._deadlines
        while heap and heap[0][0] <= now:
            _, _, link = heapq.heappop(heap)
            if link.closed:
                continue
            if link.session is None:
                why = "no CONNECT in time" if link.entering is None else "not authenticated in time"
                house.event("client.refused", link, reason=0x8D, why=why)
                link.dismiss(Reason.KEEP_ALIVE_TIMEOUT)
                continue
            if link.expires_at is not None:
                if link.expires_at <= now:
                    house.event("client.refused", link, reason=0x87, why="what it came in by has expired")
                    link.dismiss(Reason.NOT_AUTHORIZED, "what you came in by has expired")
                    continue
                if not link.keep_alive:
                    self.add(link, min(link.expires_at, now + HOLD_SECONDS_MAX))
                    continue
            if not link.keep_alive:
                continue
            deadline = link.heard_at + 1.5 * link.keep_alive
            if link.expires_at is not None:
                deadline = min(deadline, link.expires_at)
            if link.heard_at + 1.5 * link.keep_alive <= now:
                house.event("client.lost", link, why="keep alive ran out")
                link.dismiss(
                    Reason.KEEP_ALIVE_TIMEOUT, "no packet within one and a half keep alive intervals"
                )
            else:
                self.add(link, deadline)

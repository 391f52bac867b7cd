"""Clients that have gone silent: no CONNECT in time, no packet within one and a half keep alives. MQTT 5.0, 3.1.2.10.

They are looked at now and then; a client that spoke in between gets its next deadline. Time is an argument."""

from __future__ import annotations

from typing import Any

from rumq.mqtt.reasons import Reason
from rumq.session.protocol.connected import Link
from rumq.session.state.deadlines import Deadlines

LOOK_SECONDS = 0.25
HOLD_SECONDS_MAX = 60.0


class KeepAliveMonitor:
    def __init__(self) -> None:
        self._deadlines: Deadlines[Link] = Deadlines()
        self.next_look = 0.0

    def __len__(self) -> int:
        return len(self._deadlines)

    def add(self, link: Link, deadline: float) -> None:
        """Look at a link at its deadline, or at one that it has already if that is sooner: then it gets the next."""
        if link.timer is None or link.timer[0] > deadline:
            self._deadlines.put(link, deadline)

    def cancel(self, link: Link) -> None:
        """The link has ended."""
        self._deadlines.cancel(link)

    def look(self, house: Any) -> None:
        """End the connections whose time is up."""
        now: float = house.monotonic
        self.next_look = now + LOOK_SECONDS
        while (link := self._deadlines.maybe_due(now)) is not None:
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

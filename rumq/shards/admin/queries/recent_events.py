"""The newest events of this shard's process, from the ring that `output` keeps. Cost: of an answer, its bytes."""

from __future__ import annotations

import msgspec

from rumq.admin import requests as q
from rumq.admin.event_cursor import places_of
from rumq.events.event_ring import EventRing, wants
from rumq.shards.admin.listings.listings import Answer


class RecentEvents:
    def __init__(self, shard: int, ring: EventRing) -> None:
        self._index, self._ring = shard, ring

    def events(self, asked: q.Events) -> Answer:
        """After a restart of the shard a cursor is at the begin of the new run. raises: ValueError"""
        ring, wanted = self._ring, wants(asked.level, asked.event)
        if asked.after is None:
            found = ring.newest(asked.limit, wanted)
        else:
            run, number = places_of(asked.after).get(self._index, (ring.run, ring.first))
            found = ring.since(number if run == ring.run else 1, asked.limit, wanted)
        rows = [
            {"number": each.number, "time_us": each.time_us, "line": msgspec.Raw(each.line)} for each in found.events
        ]
        return {"shard": self._index, "run": ring.run, "next": found.next, "lost": found.lost, "events": rows}

"""The statistics of all shards as topics and their texts: mosquitto(8), "Broker Status", and our own.

docs/reference/sys.md.
Tallies and times are passed in."""

from __future__ import annotations

import msgspec

from rumq.shards.bus import messages as m
from rumq.shards.bus.shard_tally import Counts, Standing
from rumq.shards.stats.moving_averages import MovingAverages

BROKER = "$SYS/broker"
OWN = "$SYS/rumq"
# Topic below load/ -> which count it is the rate of.
LOADS = {
    "messages/received": "packets_in",
    "messages/sent": "packets_out",
    "publish/received": "published",
    "publish/sent": "delivered",
    "publish/dropped": "dropped",
    "bytes/received": "bytes_in",
    "bytes/sent": "bytes_out",
    "connections": "connections",
    "sockets": "sockets",
}


class BrokerStats:
    """The newest tally of every shard, and what those of shards that have died had counted."""

    def __init__(self, version: str) -> None:
        self._version = version
        self._tallies: dict[int, m.Tally] = {}
        self._before = Counts()  # counts of earlier runs of shards
        self._averages = MovingAverages()
        self._last: float | None = None
        self._connected_max = 0

    def update(self, tally: m.Tally) -> None:
        """The newest numbers of a shard."""
        known = self._tallies.get(tally.shard)
        if known is not None and known.incarnation != tally.incarnation:
            self._before = added(self._before, known.counts)
        self._tallies[tally.shard] = tally

    def lost(self, shard: int) -> None:
        """The shard does not run: its counters stay, nobody is connected to it."""
        known = self._tallies.get(shard)
        if known is not None:
            self._tallies[shard] = m.Tally(shard, known.incarnation, known.counts, Standing())

    def topics(self, uptime_seconds: float) -> dict[str, str]:
        """Every topic with its text. uptime_seconds: since the broker began, more at each call"""
        counts = self._before
        for tally in self._tallies.values():
            counts = added(counts, tally.counts)
        standings = [tally.standing for tally in self._tallies.values()]
        told = {f"{BROKER}/version": self._version, f"{BROKER}/uptime": f"{int(uptime_seconds)} seconds"}
        told |= {f"{BROKER}/{topic}": str(number) for topic, number in self._broker(counts, standings).items()}
        told |= {f"{BROKER}/{topic}": text for topic, text in self._loads(counts, uptime_seconds).items()}
        for shard, tally in sorted(self._tallies.items()):
            told |= {f"{OWN}/{topic}": str(number) for topic, number in of_shard(shard, tally).items()}
        return told

    def _broker(self, counts: Counts, standings: list[Standing]) -> dict[str, int]:
        connected = sum(s.connected for s in standings)
        sessions = sum(s.sessions for s in standings)
        records = sum(p.next_lsn - p.first_lsn for s in standings for p in s.partitions)
        self._connected_max = max(self._connected_max, connected)
        return {
            "clients/connected": connected,
            "clients/active": connected,
            "clients/disconnected": sessions - connected,
            "clients/inactive": sessions - connected,
            "clients/total": sessions,
            "clients/maximum": self._connected_max,
            "clients/expired": counts.expired,
            "messages/received": counts.packets_in,
            "messages/sent": counts.packets_out,
            "messages/stored": records,
            "store/messages/count": records,
            "store/messages/bytes": sum(s.log_bytes for s in standings),
            "publish/messages/received": counts.published,
            "publish/messages/sent": counts.delivered,
            "publish/messages/dropped": counts.dropped,
            "publish/bytes/received": counts.published_bytes,
            "bytes/received": counts.bytes_in,
            "bytes/sent": counts.bytes_out,
            "subscriptions/count": sum(s.subscriptions for s in standings),
            "shared_subscriptions/count": sum(s.shared for s in standings),
            "retained messages/count": sum(s.retained for s in standings),
        }

    def _loads(self, counts: Counts, uptime_seconds: float) -> dict[str, str]:
        if self._last is not None:
            rates = {topic: getattr(counts, name) for topic, name in LOADS.items()}
            self._averages.update(rates, uptime_seconds - self._last)
        self._last = uptime_seconds
        return {
            f"load/{topic}/{window}": f"{average:.2f}" for (topic, window), average in self._averages.items().items()
        }


def of_shard(shard: int, tally: m.Tally) -> dict[str, int]:
    """Topic below $SYS/rumq -> number."""
    standing = tally.standing
    told = {
        f"shards/{shard}/connections": standing.connected,
        f"shards/{shard}/topics": standing.topics,
        f"shards/{shard}/log_bytes": standing.log_bytes,
        f"shards/{shard}/refused": tally.counts.refused,
        f"shards/{shard}/handed_over": tally.counts.handed_over,
        f"shards/{shard}/taken_over": tally.counts.taken_over,
    }
    for p in standing.partitions:
        told[f"partitions/{p.stream}/{p.number}/next_lsn"] = p.next_lsn
        told[f"partitions/{p.stream}/{p.number}/committed_lsn"] = p.committed_lsn
    return told


def added(one: Counts, other: Counts) -> Counts:
    pairs = zip(msgspec.structs.astuple(one), msgspec.structs.astuple(other), strict=True)
    return Counts(*[a + b for a, b in pairs])

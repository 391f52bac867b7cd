"""What the broker tells of itself under $SYS, published every few seconds by shard 0. docs/sys.md says what.

It stands in a partition of its own that is in no file (docs/decisions/0011-status-is-not-logged.md); whoever subscribes
reads it as any other. The other shards send their numbers. Knows no client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from commitlog.chunk import FLAG_RETAIN
from commitlog.row_layout import ROW, ROW_RETAIN
from router import commands as c
from rumq.shards.bus import messages as m
from rumq.shards.stats.broker_stats import OWN, BrokerStats
from rumq.shards.stats.counters import Counters

if TYPE_CHECKING:
    from rumq.shards.turn.turn import Driver


class SysPublisher:
    def __init__(
        self, driver: Driver, partition: Any, *, interval_seconds: float, version: str, started: float
    ) -> None:
        """partition: the one that is in no file, shard 0's; started: when the broker was, by the driver's clock"""
        self._driver, self._partition = driver, partition
        self._interval_seconds, self._started = interval_seconds, started
        self._counting = Counters(driver, self._counted)
        self._census = BrokerStats(version)
        self._told: dict[str, str] = {}

    def begin(self) -> None:
        """Tell now, and then again and again."""
        self._driver.later(self._interval_seconds, self.begin)
        self._counting.begin()

    def heard(self, tally: m.Tally) -> None:
        """Another shard has sent its numbers."""
        self._census.take(tally)

    def _counted(self, tally: m.Tally) -> None:
        driver = self._driver
        if driver.index:
            first = driver.peers.others[0].link
            if first is not None:
                first.say(tally)
            return
        self._census.take(tally)
        for index, peer in driver.peers.others.items():
            if peer.link is None:
                self._census.gone(index)
        topics = self._census.topics(driver.monotonic - self._started)
        topics |= {f"{OWN}/disk/{name}": str(number) for name, number in self._of_disk().items()}
        changed = {name: text for name, text in topics.items() if self._told.get(name) != text}
        self._told = topics
        if changed:
            self._publish(changed)

    def _of_disk(self) -> dict[str, int]:
        """seconds_to_full: -1 when nothing fills it."""
        disk = self._driver.disk
        if disk.space is None:
            return {}
        seconds = disk.seconds_to_full()
        return {
            "free_bytes": disk.space.free_bytes,
            "total_bytes": disk.space.total_bytes,
            "seconds_to_full": -1 if seconds is None else round(seconds),
        }

    def _publish(self, texts: dict[str, str]) -> None:
        partition = self._partition
        rows, frames = bytearray(), bytearray()
        for name, text in texts.items():
            topic = name.encode()
            topic_id = partition.topic_ids.get(topic)
            if topic_id is None:
                topic_id = partition.add_topic(topic)
            head, payload = head_of(topic, len(text)), text.encode()
            rows += ROW.pack(topic_id, len(frames), 0, 0, len(head), 0, ROW_RETAIN, 0)
            frames += head + payload
        index, count = partition.index, len(texts)
        driver = self._driver
        driver.commands.put(c.Append(index, rows, bytes(frames), count, FLAG_RETAIN, b""))
        driver.commands.put(c.Committed(index, partition.next_lsn + count))


def head_of(topic: bytes, payload_len: int) -> bytes:
    """A PUBLISH of QoS 0 up to its payload, as every frame of the log is."""
    remaining = 2 + len(topic) + payload_len
    length = bytes([remaining]) if remaining < 128 else bytes([remaining & 127 | 128, remaining >> 7])
    return b"\x30" + length + len(topic).to_bytes(2, "big") + topic

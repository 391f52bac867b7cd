"""The $SYS topics, published every few seconds by shard 0; the other shards send it their numbers.

docs/reference/sys.md.
They are in a partition without files (docs/decisions/0011-status-is-not-logged.md), which is read like any other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from commitlog.chunk import FLAG_RETAIN
from commitlog.log.partition_types import PartitionReader, PartitionWriter
from commitlog.row_layout import ROW, ROW_RETAIN
from router import commands as c
from rumq.loop.ports import Clock, CommandQueue, Timers
from rumq.shards.bus import messages as m
from rumq.shards.retention.disk_space import DiskStatistics
from rumq.shards.stats.broker_stats import BROKER, OWN, BrokerStats
from rumq.shards.stats.counters import Counters


class SysReceiver(Protocol):
    def say(self, message: m.AnyMessage) -> bool:
        """False while it is away."""


class OtherShards(Protocol):
    """`rumq.shards.peers.peers`"""

    @property
    def others(self) -> Mapping[int, SysReceiver]: ...
    def is_linked(self, shard: int) -> bool: ...


@dataclass(frozen=True, slots=True)
class SysStatus:
    """What shard 0 publishes under $SYS, and how often. started: when the broker was, monotonic seconds

    bridges: name -> whether it is connected"""

    interval_seconds: float
    version: str
    started: float
    bridges: Callable[[], Mapping[str, bool]] = dict


class SysPublisher:
    def __init__(
        self, counters: Counters, partition: PartitionReader, peers: OtherShards, commands: CommandQueue,
        timers: Timers, clock: Clock, disk: Callable[[], DiskStatistics], status: SysStatus,
    ) -> None:  # fmt: skip
        """partition: without files, shard 0's"""
        self._counters, self._partition, self._peers = counters, partition, peers
        self._commands, self._timers, self._clock = commands, timers, clock
        self._disk, self._status = disk, status
        self._stats = BrokerStats(status.version)
        self._published: dict[str, str] = {}
        self._bridges: dict[str, bool] = {}  # also those that have left the settings

    def begin(self) -> None:
        """Publish now, and every interval."""
        self._timers.later(self._status.interval_seconds, self.begin)
        self._counters.count(self._counted)

    def received(self, tally: m.Tally) -> None:
        """Another shard has sent its numbers."""
        self._stats.update(tally)

    def _counted(self, tally: m.Tally) -> None:
        if self._counters.shard.index:
            self._peers.others[0].say(tally)
            return
        self._stats.update(tally)
        for index in self._peers.others:
            if not self._peers.is_linked(index):
                self._stats.lost(index)
        topics = self._stats.topics(self._clock.monotonic - self._status.started)
        topics |= {f"{OWN}/disk/{name}": str(number) for name, number in self._disk_topics().items()}
        topics |= {f"{BROKER}/connection/{name}/state": str(int(is_up)) for name, is_up in self._bridge_states()}
        changed = {name: text for name, text in topics.items() if self._published.get(name) != text}
        self._published = topics
        if changed:
            self._publish(changed)

    def _bridge_states(self) -> Iterable[tuple[str, bool]]:
        self._bridges = {**dict.fromkeys(self._bridges, False), **self._status.bridges()}
        return self._bridges.items()

    def _disk_topics(self) -> dict[str, int]:
        """seconds_to_full: -1 when nothing fills it."""
        disk = self._disk()
        if disk.free_bytes is None or disk.total_bytes is None:
            return {}
        return {
            "free_bytes": disk.free_bytes,
            "total_bytes": disk.total_bytes,
            "seconds_to_full": -1 if disk.seconds_to_full is None else round(disk.seconds_to_full),
        }

    def _publish(self, texts: dict[str, str]) -> None:
        partition = self._partition
        assert isinstance(partition, PartitionWriter)  # in shard 0
        rows, frames = bytearray(), bytearray()
        for name, text in texts.items():
            topic = name.encode()
            topic_id = partition.topic_ids.get(topic)
            if topic_id is None:
                topic_id = partition.add_topic(topic)
            head, payload = head_of(topic, len(text)), text.encode()
            rows += ROW.pack(topic_id, len(frames), 0, 0, len(head), 0, ROW_RETAIN, 0)
            frames += head + payload
        chunk = partition.append(rows, bytes(frames), len(texts), FLAG_RETAIN, self._clock.now_us)
        self._commands.put(c.Appended(partition.index, chunk))
        self._commands.put(c.Committed(partition.index, chunk.next_lsn))


def head_of(topic: bytes, payload_len: int) -> bytes:
    """A PUBLISH of QoS 0 up to its payload, as every frame of the log is."""
    remaining = 2 + len(topic) + payload_len
    length = bytes([remaining]) if remaining < 128 else bytes([remaining & 127 | 128, remaining >> 7])
    return b"\x30" + length + len(topic).to_bytes(2, "big") + topic

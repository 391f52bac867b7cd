"""The partitions of a shard that followers copy, and how a writer's thread wakes the loop when it tells of them."""
# compiled: hot

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable

from commitlog.log.partition import Partition
from commitlog.log.store import Store
from rumq.cluster.replication.packing_members import PackingPatience
from rumq.shards.replication.feeding.copied_partition import CopiedPartition, Place
from rumq.shards.replication.feeding.feeder import Feeder


class PartitionCopies:
    """One partition. feeders: by follower; places: by follower, up to where it has synced
    unsettled: (next lsn, bytes, monotonic seconds when it was written here) of groups that are not committed"""

    def __init__(self, source: CopiedPartition) -> None:
        self.source = source
        self.partition: Partition = source.partition
        self.is_quorum = source.partition.spec.durability == "quorum"
        self.feeders: dict[str, Feeder] = {}
        self.places: dict[str, Place] = {}
        self.unsettled: deque[tuple[int, int, float]] = deque()
        self.unsettled_bytes = self.group_bytes = 0

    def is_live(self, peer: str) -> bool:
        """Whether a follower gets what is written as it is written."""
        feeder = self.feeders.get(peer)
        return feeder is not None and feeder.is_live

    def behind_bytes(self, peer: str) -> int:
        """Of the partition's files, what a follower has not synced. Cost: the segments that it lacks"""
        name, stop = self.places.get(peer, ("", 0))
        lacks = 0
        for segment in reversed(self.source.segments()):
            if segment.name == name:
                return lacks + max(0, segment.stop - stop)
            lacks += segment.stop
        return lacks


class Copies:
    """by_key: by the partition's directory below the store's; patience: until finished segments may be packed"""

    def __init__(
        self, store: Store, watch: Callable[[int, Callable[[], None]], None], woken: Callable[[], None],
        patience: PackingPatience,
    ) -> None:  # fmt: skip
        """watch: of the pump, calls when a descriptor is readable; woken: called on the loop, there is news"""
        assert store.internal is not None
        self._woken, self.patience = woken, patience
        self._has_news = False
        self._loop_thread = threading.get_ident()
        self._fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        watch(self._fd, self._awake)
        self.by_key: dict[str, PartitionCopies] = {}
        self._by_index: dict[int, PartitionCopies] = {}
        for partition in [*store.own, store.internal]:
            key = partition.directory.removeprefix(f"{store.root}/")
            copied = PartitionCopies(CopiedPartition(key, partition, self._wake))
            self.by_key[key] = self._by_index[partition.index] = copied
            if copied.is_quorum:
                # What was adopted is committed as soon as the term is open, and nobody is served before.
                partition.replicated_lsn = partition.next_lsn

    def maybe_at(self, index: int) -> PartitionCopies | None:
        """index: of the partition in its store"""
        return self._by_index.get(index)

    def ends(self) -> dict[str, int]:
        """By key: the next lsn."""
        return {key: copied.partition.next_lsn for key, copied in self.by_key.items()}

    def take_news(self) -> bool:
        """Whether a writer has told something since."""
        if not self._has_news:
            return False  # and nothing is set: a thread may tell of something just now
        self._has_news = False
        return True

    def _wake(self) -> None:
        """On the thread that writes: something was told."""
        if not self._has_news:
            self._has_news = True
            if threading.get_ident() != self._loop_thread:
                os.eventfd_write(self._fd, 1)

    def _awake(self) -> None:
        os.eventfd_read(self._fd)
        self._woken()

    def close(self) -> None:
        for copied in self.by_key.values():
            copied.partition.writer.tap = None
        os.close(self._fd)

"""Write admission: answers to publishers while a partition cannot keep records. docs/decisions/0007-a-full-disk.md.

A partition is offline after its disk has refused a group and the new segment too; all partitions refuse while less than
`free_bytes_min` is free, so that the broker's own writes have room. An MQTT 5 client gets a reason code. An older one
cannot be told: it gets no acknowledgement, and its connection is closed when the log accepts records again, so that it
reconnects and sends the unacknowledged messages again, in order.

Knows no file and no thread."""

from __future__ import annotations

from collections.abc import Callable

from commitlog.disk.os_errors import FULL, while_running
from commitlog.log.partition_types import PartitionReader
from commitlog.log.store import Store
from rumq.loop.ports import EventSink
from rumq.mqtt.kernels.batch import Batch
from rumq.mqtt.reasons import Reason
from rumq.session.connection.broker_port import PublishRefusal
from rumq.session.ports.transport import ConnectionHandler

FREED = 1.25  # x the least free space: writes are accepted again above this


class WriteAdmission:
    """The partitions of a shard, and those of their publishers who were not answered."""

    def __init__(
        self, store: Store, batches: list[Batch], events: EventSink, *, free_bytes_min: int,
        say: Callable[[int, bool, str], None],
    ) -> None:  # fmt: skip
        """batches: as `cut` fills them, by partition; free_bytes_min: 0 takes records to the last byte

        say: tells other shards of a partition that is ours, as they take it in with `elsewhere`"""
        assert store.internal is not None
        self._partitions: list[PartitionReader] = [*store.partitions, store.internal]
        self._batches = batches
        self._events = events
        self._say = say
        self._said: dict[int, tuple[bool, str]] = {}
        self.free_bytes_min = free_bytes_min
        self._offline: dict[int, int] = {}  # partition -> errno
        self.is_full = False
        self.is_unreachable = False
        self._refused = 0
        self.refused = 0  # messages that were refused so far
        self._elsewhere: dict[int, tuple[bool, str]] = {}  # partitions of other shards: (for want of room, why)
        self._unanswered: dict[ConnectionHandler, int] = {}  # -> the partition that did not take its message

    def offline(self, index: int, number: int | None, why: str) -> None:
        """A partition of the store can write nothing; told once. number: the errno, if it was one"""
        if index in self._offline:
            return
        self._offline[index] = number or 0
        partition = self._partitions[index]
        self._events.tell("log.offline", stream=partition.stream, partition=partition.number, why=why)
        self._tell_batches()

    def online(self, index: int) -> None:
        """A group of the partition was written."""
        if index not in self._offline:
            return
        del self._offline[index]
        partition = self._partitions[index]
        self._events.tell(
            "log.online", stream=partition.stream, partition=partition.number, refused=self._take_refused()
        )
        self._tell_batches()

    def unreachable(self, fault: OSError) -> None:
        """The data directory is not where it was: what is written to open files may be lost with them."""
        if not self.is_unreachable:
            self.is_unreachable = True
            self._events.tell("log.unreachable", why=f"{fault}: {while_running(fault)}")
            self._tell_batches()

    def free(self, free_bytes: int) -> None:
        """The data directory is there, and so much is free on its disk."""
        least = self.free_bytes_min
        if self.is_unreachable:
            self.is_unreachable = False
            self._events.tell("log.reachable", refused=self._take_refused())
            self._tell_batches()
        if free_bytes < least and not self.is_full:
            self.is_full = True
            self._events.tell("log.full", free_bytes=free_bytes, free_bytes_min=least)
            self._tell_batches()
        elif self.is_full and free_bytes >= least * FREED:
            self.is_full = False
            self._events.tell("log.freed", free_bytes=free_bytes, refused=self._take_refused())
            self._tell_batches()

    def elsewhere(self, index: int, full: bool, why: str) -> None:
        """Whether another shard's partition takes records; why: empty when it does."""
        if why:
            self._elsewhere[index] = (full, why)
        else:
            self._elsewhere.pop(index, None)
        self._tell_batches()

    def is_offline_elsewhere(self, index: int) -> bool:
        """Whether another shard's partition cannot be written."""
        return self._elsewhere.get(index, (False, ""))[1] == "offline"

    def reasons(self) -> dict[int, tuple[bool, str]]:
        """Of each partition that is ours and takes nothing: (for want of room, why)."""
        found = {}
        for index, partition in enumerate(self._partitions[: len(self._batches)]):
            if partition.is_mirrored:
                continue
            if self.is_full or self.is_unreachable:
                found[index] = (self.is_full, "full" if self.is_full else "unreachable")
            elif index in self._offline:
                found[index] = (self._offline[index] in FULL, "offline")
        return found

    def refuse(self, handler: ConnectionHandler, index: int, *, is_unanswerable: bool) -> PublishRefusal | None:
        """Count a message for a partition that takes none: it is not stored, and nobody gets it.

        None: it gets no answer, and its client is dismissed once the partition takes messages again"""
        self._refused += 1
        self.refused += 1
        if is_unanswerable:
            self._unanswered[handler] = index
            return None
        is_full = self.is_full or self._offline.get(index) in FULL or self._elsewhere.get(index, (False, ""))[0]
        if is_full:
            return PublishRefusal(Reason.QUOTA_EXCEEDED, "the broker's disk is full")
        return PublishRefusal(Reason.IMPLEMENTATION_SPECIFIC_ERROR, "the broker's disk fails")

    def _tell_batches(self) -> None:
        for index, batch in enumerate(self._batches):
            here = self.is_full or self.is_unreachable or index in self._offline
            batch.refusing = here or index in self._elsewhere
        reasons = self.reasons()
        for index in sorted(reasons.keys() | self._said.keys()):
            if reasons.get(index) != self._said.get(index):
                self._say(index, *reasons.get(index, (False, "")))
        self._said = reasons
        for link in [link for link, index in self._unanswered.items() if not self._batches[index].refusing]:
            del self._unanswered[link]
            # It sends again what was not acknowledged, when it is back; what came after it must not come before.
            link.dismiss(Reason.SERVER_BUSY)

    def _take_refused(self) -> int:
        refused, self._refused = self._refused, 0
        return refused

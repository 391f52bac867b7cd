"""The limit on retained messages: beyond `retained_bytes_max` of a partition a retained message is refused.

Retained messages are in memory, under names that any publisher can invent. An empty retained message is always
accepted: it frees memory. Knows no socket."""
# compiled: warm

from __future__ import annotations

from collections.abc import Callable

from commitlog.log.store import Store
from router.matching.retained import RetainedView
from rumq.loop.ports import EventSink
from rumq.loop.stage import Stage
from rumq.mqtt.kernels.batch import Batch
from rumq.mqtt.reasons import Reason
from rumq.session.connection.broker_port import PublishRefusal

FREED = 0.95  # x the quota: a full partition accepts again below this, so that it does not flap


class RetainedQuota(Stage):
    """batches: as `cut` fills them; say: tells other shards whether a partition of ours may retain more"""

    def __init__(
        self, store: Store, view: RetainedView, batches: list[Batch], events: EventSink,
        say: Callable[[int, bool], None],
    ) -> None:  # fmt: skip
        self._store, self._view, self._batches, self._events, self._say = store, view, batches, events, say
        self._looked = -1
        self.full: set[int] = set()  # indexes of partitions of this shard that are full
        self.refused = 0

    def end_turn(self) -> None:
        """Compare what there is with what there may be. Cost: nothing if nothing was retained."""
        if self._view.changes == self._looked:
            return
        self._looked = self._view.changes
        for partition in self._store.own:
            most, index = partition.spec.retained_bytes_max, partition.index
            there = self._view.bytes_in.get(index, 0)
            if index not in self.full and most is not None and there >= most:
                self.full.add(index)
                self._events.tell(
                    "retained.full",
                    stream=partition.stream,
                    partition=partition.number,
                    retained_bytes_max=most,
                )
                self._changed(index)
            elif index in self.full and (most is None or there < most * FREED):
                self.full.discard(index)
                self._events.tell(
                    "retained.freed",
                    stream=partition.stream,
                    partition=partition.number,
                    refused=self.refused,
                )
                self._changed(index)

    def look_again(self) -> None:
        """The limits have changed."""
        self._looked = -1

    def elsewhere(self, index: int, full: bool) -> None:
        """Another shard's partition may retain nothing more, or may again."""
        self._batches[index].full_of_retained = full

    def _changed(self, index: int) -> None:
        self._batches[index].full_of_retained = index in self.full
        self._say(index, index in self.full)

    def refuse(self) -> PublishRefusal:
        """Count a retained message that there is no room for: it is not stored, and nobody gets it."""
        self.refused += 1
        return PublishRefusal(Reason.QUOTA_EXCEEDED, "too much is retained already")

"""What another shard gets of our partitions: the records that somebody there wants, in the order of their lsns.

To the router it is a subscriber like any other. If the bus is full it falls behind, and reads on from the log when
there is room: nothing is queued for it. Knows no client."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from commitlog.chunk import FLAG_UNIFORM
from commitlog.cold_reads import clipped
from commitlog.kernels import rows as row_kernel
from router.commands import Blocked, CommandQueue
from router.effects import Deliver
from router.kernels import routes as route_kernel
from rumq.shards.bus.bus_link import BusLink
from rumq.shards.bus.messages import Names, Rows


class ShardSink:
    """The sink of a reader for another shard."""

    def __init__(self, link: BusLink) -> None:
        self._link = link
        self.outbox = link.transport

    @property
    def is_open(self) -> bool:
        return not self._link.closed

    def forward(self, effect: Deliver) -> None:
        raise NotImplementedError


class RecordForwarder(ShardSink):
    """Sends the records that another shard's own readers want."""

    def __init__(
        self, link: BusLink, feeds: list[Any], commands: CommandQueue, introduce: Callable[[int], None]
    ) -> None:
        """introduce: tells the other shard who publishes to a partition, if it asks for that"""
        super().__init__(link)
        self._feeds, self._commands, self._introduce = feeds, commands, introduce
        self._told = [bytearray() for _ in feeds]  # of each partition: which topic ids have been named

    def forward(self, effect: Deliver) -> None:
        """Send the wanted rows of a chunk, or say that there is no room."""
        if not self.is_open:
            return
        chunk, index = effect.chunk, effect.partition
        if self.outbox.room <= 0:
            self.outbox.refused = True
            for reader in effect.readers:
                self._commands.put(Blocked(reader, index, chunk.base_lsn + effect.first))
            return
        flags = chunk.flags
        if effect.wanted is None:
            part = clipped(chunk, chunk.base_lsn + effect.first, chunk.base_lsn + effect.stop)
            rows, frames = part.rows, part.frames
        else:
            rows, frames = route_kernel.only_wanted(
                chunk.rows, chunk.frames, effect.first, effect.stop, effect.places, effect.wanted
            )
            flags &= ~FLAG_UNIFORM
        message = Rows(
            index, chunk.base_lsn + effect.first, effect.stop - effect.first, chunk.base_ts, flags,
            self.names(index, rows), len(rows),
        )  # fmt: skip
        self._introduce(index)
        self._link.say(message, rows, frames)

    def names(self, index: int, rows: Any) -> Names:
        """The names of topic ids in some rows that the other shard does not know yet."""
        topic_names, told = self._feeds[index].partition.topic_names, self._told[index]
        if len(told) < len(topic_names):
            told.extend(bytes(len(topic_names) - len(told) + 1024))
        return [(number, topic_names[number]) for number, _ in row_kernel.first_seen(rows, 0, told)]

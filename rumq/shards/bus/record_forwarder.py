"""Records of this shard's partitions for another shard that has subscribers, in the order of their lsns.

To the router the other shard is a subscriber like any other. If the bus is full it falls behind, and reads on from the
log when there is room: nothing is queued for it."""
# compiled: hot

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from commitlog.chunk import FLAG_UNIFORM
from commitlog.kernels import rows as row_kernel
from commitlog.log.partition_types import NamesOfPublishers, PartitionWriter
from commitlog.names.publisher_names import KEPT_MAX, PublisherNames
from commitlog.read.cold_reads import clipped, publishers_in
from router import commands as c
from router.effects import Deliver
from router.kernels import routes as route_kernel
from router.matching.feed import Feed
from router.readers.reader import Reader
from router.readers.subscriber import Subscriber
from rumq.loop.ports import Call, CommandQueue, Timers
from rumq.net.frames import Raw
from rumq.shards.bus import messages as m
from rumq.shards.bus.bus_link import BusLink
from rumq.tracing.trace import Wire

NAMES_A_MESSAGE = 4096
SENT_MAX = KEPT_MAX
VIEWS_MAX = 12  # a socket takes 64 buffers at once


class SentNames:
    """Client ids of publisher numbers, sent to a shard whose subscribers ask for publishers, ahead of their records.

    A number is one client id's for ever. The other shard keeps the last 2 * SENT_MAX that it was sent; which ones it
    has is known here of SENT_MAX, then all are sent anew as they are needed."""

    def __init__(self, link: BusLink, partitions: Sequence[PartitionWriter]) -> None:
        self._link = link
        self._names = {p.index: p.publisher_names for p in partitions}
        # by partition: publisher numbers that were named; 0 is no publisher's
        self._sent: dict[int, set[int]] = {index: {0} for index in self._names}

    def introduce(self, index: int, numbers: set[int], own: dict[int, bytes] | None) -> None:
        """Send those client ids that the other shard need not have. own: those of a chunk, None: the partition's"""
        sent = self._sent[index]
        new = sorted(numbers - sent)
        if not new:
            return
        names: NamesOfPublishers = self._names[index] if own is None else own
        for run in runs_of(new, NAMES_A_MESSAGE):
            self._link.say(m.Publishers(index, run[0], [names.get(number, b"") for number in run]))
        if len(sent) + len(new) > SENT_MAX:
            sent.clear()
            sent.add(0)
        sent.update(new)


def runs_of(numbers: Sequence[int], length_max: int) -> Iterator[Sequence[int]]:
    """Sorted numbers in runs without a gap."""
    first = 0
    for at in range(1, len(numbers) + 1):
        if at == len(numbers) or numbers[at] != numbers[at - 1] + 1 or at - first == length_max:
            yield numbers[first:at]
            first = at


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

    def __init__(self, link: BusLink, feeds: Sequence[Feed], commands: CommandQueue, names: RemoteSubscriber) -> None:
        super().__init__(link)
        self._feeds, self._commands, self._publisher_names = feeds, commands, names
        self._named = [bytearray() for _ in feeds]  # of each partition: which topic ids have been named

    def forward(self, effect: Deliver) -> None:
        """Send the wanted rows of a chunk, or report that there is no room."""
        if not self.is_open:
            return
        chunk, index = effect.chunk, effect.partition
        if self.outbox.room <= 0:
            self.outbox.refused = True
            for reader in effect.readers:
                self._commands.put(c.Blocked(reader, index, chunk.base_lsn + effect.first))
            return
        flags = chunk.flags
        frames: Sequence[Raw]
        if effect.wanted is None:
            part = clipped(chunk, chunk.base_lsn + effect.first, chunk.base_lsn + effect.stop)
            rows, frames = part.rows, [part.frames]
        else:
            rows, frames = route_kernel.only_wanted(
                chunk.rows, chunk.frames, effect.first, effect.stop, effect.places, effect.wanted, VIEWS_MAX
            )
            flags &= ~FLAG_UNIFORM
        message = m.Rows(
            index, chunk.base_lsn + effect.first, effect.stop - effect.first, chunk.base_ts, flags,
            self._new_names(index, rows), len(rows), *traced_of(effect),
        )  # fmt: skip
        self._publisher_names.introduce(index, rows, chunk.publishers)
        self._link.say(message, rows, *frames)

    def _new_names(self, index: int, rows: Raw) -> m.Names:
        """The names of topic ids in some rows that the other shard does not know yet."""
        topic_names, named = self._feeds[index].partition.topic_names, self._named[index]
        if len(named) < len(topic_names):
            named.extend(bytes(len(topic_names) - len(named) + 1024))
        return [(number, topic_names[number]) for number, _ in row_kernel.first_seen(rows, 0, named)]


def traced_of(effect: Deliver) -> tuple[Wire, int]:
    """`Rows.traced` and `Rows.sent_us` of what is forwarded."""
    chunk = effect.chunk
    if chunk.traces is None:
        return [], 0
    first, stop = chunk.base_lsn + effect.first, chunk.base_lsn + effect.stop
    return chunk.traces.wire(first, stop), chunk.traces.tracer.time_us()


Confirmed = Callable[[Call], None]


class RemoteSubscriber:
    """Another shard as a subscriber: the filters that it has asked for, over one link after the other."""

    def __init__(
        self, shard: int, partitions: Sequence[PartitionWriter], feeds: Sequence[Feed], commands: CommandQueue,
        timers: Timers,
    ) -> None:  # fmt: skip
        """partitions: of this shard"""
        self._shard, self._partitions, self._feeds = shard, partitions, feeds
        self._commands, self._timers = commands, timers
        self._subscriber: Subscriber | None = None
        self._early: list[m.Want] = []
        self._names: SentNames | None = None  # set while the other shard has subscriptions that ask for publishers
        self.wants_marks = False

    def sent(self, index: int) -> int:
        """The lsn before which all that it wants of a partition has gone out over the link."""
        return self.reader.cursors[index] if self.reader is not None else 0

    @property
    def reader(self) -> Reader | None:
        return self._subscriber.main if self._subscriber is not None else None

    def begin(self, link: BusLink, message: m.Begin, confirmed: Confirmed) -> None:
        """Forward records from the cursors on. confirmed: sends marks, and calls what it is given: it answers"""
        self._subscriber = Subscriber(f"shard {self._shard}", None, is_shard=True)
        self._commands.put(c.Attach(self._subscriber, RecordForwarder(link, self._feeds, self._commands, self)))
        own = [partition.index for partition in self._partitions]
        self._commands.put(c.SubscribeShard(self._subscriber, message.filters, own, message.cursors))
        early, self._early = self._early, []
        for want in early:
            self.want(link, want, confirmed)

    def lost(self) -> None:
        if self._subscriber is not None:
            self._commands.put(c.End(self._subscriber, []))
            self._subscriber = None
        self._names = None
        self._early.clear()

    def drained(self) -> None:
        """The link has room again."""
        if self._subscriber is not None:
            self._commands.put(c.Ready(self._subscriber))

    def want(self, link: BusLink, message: m.Want, confirmed: Confirmed) -> None:
        self.wants_marks |= message.marks
        if self._subscriber is None:
            self._early.append(message)  # asked again before `Begin`, of a run before
            return
        self._commands.put(c.SubscribeShard(self._subscriber, message.filters, []))

        def answer() -> None:
            if not link.closed:
                link.say(m.Wanted(message.request))

        self._timers.after_step(lambda: confirmed(answer))

    def unwant(self, message: m.Unwant, _: memoryview) -> None:
        if self._subscriber is not None:
            self._commands.put(c.NoInterest(self._subscriber, message.filters))

    # Publishers

    def want_publishers(self, link: BusLink, message: m.WantPublishers) -> None:
        if self._names is None:
            self._names = SentNames(link, self._partitions)
            for partition in self._partitions:  # the other shard has cached records that were not introduced
                known = partition.publisher_names
                if isinstance(known, PublisherNames):
                    self._names.introduce(partition.index, set(known.copied(known.next_number)), None)
        link.say(m.Wanted(message.request))

    def introduce(self, index: int, rows: Raw, own: dict[int, bytes] | None = None) -> None:
        """Name the publishers of some rows to a shard that asks for them, before the records. own: their chunk's"""
        if self._names is not None:
            self._names.introduce(index, publishers_in(rows), own)

"""Partitions that other shards own, as this shard knows them: names, watermarks, and the way to publish to them.

They are read by way of their owners only."""
# compiled: hot

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from commitlog import Chunk, Gap, NotInMemory, Store, StreamSpec
from commitlog.log.partition_types import PartitionWriter
from commitlog.names.publisher_names import KEPT_MAX, PublisherNames
from router import commands as c
from router.matching.remote_feed import RemoteFeed
from router.readers.range_queue import Range
from router.shard import ShardRouter
from rumq.loop.ports import CommandQueue, Timers
from rumq.session.journal.recorder import JournalRecorder
from rumq.session.state.session import Session
from rumq.shards.bus import messages as m
from rumq.shards.bus.bus_link import BusLink
from rumq.shards.bus.owner_run import OwnerRun
from rumq.shards.bus.publish_sender import PublishSender
from rumq.tracing.tracer import Tracer

Dropped = Callable[[str, list[Range]], None]


class RemotePartition:
    """A `PartitionReader` of another shard's partition.

    is_met: its owner has said where it begins and ends, or this shard has begun without that
    run: the owner's that positions here are of
    found: called once, with the next lsn and `OwnerRun.met`, when the owner of a partition that was begun without it is
    there"""

    is_mirrored = True
    offline = None

    def __init__(self, spec: StreamSpec, index: int, number: int, generation: int, owner: int) -> None:
        self.spec, self.index, self.number, self.generation = spec, index, number, generation
        self.owner = owner
        self.is_volatile = spec.durability == "memory"
        self.first_lsn = 0
        self.next_lsn = 0  # when its owner joined; from then on the router's feed knows
        self.is_met = False
        self.run = OwnerRun()
        self.found: Callable[[int, int], None] | None = None
        self.topic_names: list[bytes] = []  # by the owner's ids; empty where not known
        self.topic_ids: dict[bytes, int] = {}
        # By the owner's numbers; only if a subscription here asks for publishers.
        self.publisher_names = PublisherNames({}, 1, 2 * KEPT_MAX)
        self.outgoing = PublishSender(index)

    @property
    def stream(self) -> str:
        return self.spec.name

    @property
    def ack_source(self) -> PublishSender:
        return self.outgoing

    @property
    def committed_lsn(self) -> int:
        """Of the owner's log, when it last acknowledged records of ours."""
        return self.outgoing.committed_there

    def name_topics(self, names: list[tuple[int, bytes]]) -> None:
        """Learn names of topic ids."""
        for topic_id, name in names:
            missing = topic_id + 1 - len(self.topic_names)
            if missing > 0:
                self.topic_names.extend([b""] * missing)
            before = self.topic_names[topic_id]
            if before != name and self.topic_ids.get(before) == topic_id:
                del self.topic_ids[before]
            self.topic_names[topic_id] = name
            self.topic_ids[name] = topic_id

    def name_publishers(self, first: int, names: list[bytes]) -> None:
        """Learn names of publisher numbers, from `first` on."""
        self.publisher_names.learn(dict(enumerate(names, first)))

    def add_topic(self, name: bytes) -> int:
        return self.outgoing.add_topic(name)

    def add_publisher(self, client_id: str) -> int:
        return self.outgoing.add_publisher(client_id)

    def release_publisher(self, number: int) -> None:
        self.outgoing.release_publisher(number)

    def known_publisher(self, client_id: str) -> int:
        return self.outgoing.known_publisher(client_id)

    def read(self, lsn: int, bytes_max: int = 1) -> list[Chunk | Gap]:
        raise NotInMemory(lsn)


def own_partitions(store: Store) -> list[PartitionWriter]:
    """The partitions that this shard owns, also the volatile one of statistics."""
    return [p for p in store.partitions if isinstance(p, PartitionWriter)]


class PositionJournal(Protocol):
    """`rumq.shards.recovery.journal_writer`"""

    @property
    def recorder(self) -> JournalRecorder: ...
    def write_checkpoint(self) -> None: ...


class RemoteFeeds:
    """The router's side of partitions of other shards: what their owners' starts mean for readers here."""

    def __init__(
        self, router: ShardRouter, sessions: Mapping[str, Session], dropped: Dropped | None = None,
        journal: PositionJournal | None = None, timers: Timers | None = None,
    ) -> None:  # fmt: skip
        """dropped: told the key of a shared group and ranges that its home, another shard, has assigned to this one
        journal: has the positions of readers here

        None: no owner is met by way of this one"""
        self._router, self._sessions = router, sessions
        self._dropped, self._journal, self._timers = dropped, journal, timers

    def feed(self, index: int) -> RemoteFeed:
        feed = self._router.feeds[index]
        assert isinstance(feed, RemoteFeed)
        return feed

    def partition(self, index: int) -> RemotePartition:
        partition = self._router.feeds[index].partition
        assert isinstance(partition, RemotePartition)
        return partition

    def owner_joined(self, partition: RemotePartition, first_lsn: int, next_lsn: int, same_below: int) -> None:
        """The owner of a partition has said where it begins and ends. same_below: `OwnerRun.met`"""
        feed = self.feed(partition.index)
        partition.first_lsn = first_lsn
        if not partition.is_met:
            partition.is_met = True
            partition.next_lsn = next_lsn
            feed.start_at(next_lsn)
            return
        feed.owner_restarted()
        self._forget_aliases()
        # Messages of QoS 0 may have been delivered here that were never written; their lsns are given out again.
        partition.next_lsn = min(partition.next_lsn, same_below)
        if same_below < feed.visible_lsn:
            feed.truncate(same_below)
        for key, ranges in self._router.sharing.truncate(partition.index, same_below).items():
            if self._dropped is not None:
                self._dropped(key, ranges)
        for session in self._sessions.values():
            beyond = [r for r in session.subscriber.readers() if r.cursors[partition.index] > same_below]
            for reader in beyond:
                reader.cursors[partition.index] = same_below
            if beyond and session.link is None and not session.is_moving and self._journal is not None:
                self._journal.recorder.left(session)  # what the journal has of it is beyond as well
        if partition.found is not None:
            found, partition.found = partition.found, None
            found(next_lsn, same_below)

    def other_run(self) -> None:
        """An owner was met in another run, and positions here are of that one now.

        The journal says so before it has any that another run could not have had: none of its records comes before the
        next turn. In this one messages of clients may be on their way to the log, with packet ids that are open."""
        if self._journal is not None and self._timers is not None:
            self._timers.next_turn(self._journal.write_checkpoint)

    def begin_without(self, partition: RemotePartition, end_lsn: int, found: Callable[[int, int], None]) -> None:
        """The owner is away at the start of this shard, which goes on from where its last run knew the partition to
        end. found: as of `RemotePartition`"""
        partition.is_met, partition.next_lsn, partition.found = True, end_lsn, found
        self.feed(partition.index).start_at(end_lsn)

    def drop_cached(self) -> None:
        """Records that were filtered out may be wanted now: read them again."""
        for feed in self._router.feeds:
            if isinstance(feed, RemoteFeed):
                feed.drop_cached()

    def _forget_aliases(self) -> None:
        """Topic ids may have changed, and topic aliases of connections are known by them."""
        for session in self._sessions.values():
            if session.link is not None:
                session.link.flow.aliases = None


class Admission(Protocol):
    """Which partitions refuse records: `rumq.shards.write_path.write_admission`."""

    def elsewhere(self, index: int, full: bool, why: str) -> None:
        """Whether another shard's partition refuses records; why: empty when it does not."""

    def is_offline_elsewhere(self, index: int) -> bool: ...
    def reasons(self) -> dict[int, tuple[bool, str]]:
        """Of each partition of this shard that refuses records: (for want of disk space, why)."""


class Quota(Protocol):
    """Which partitions retain nothing more: `rumq.shards.write_path.retained_quota`. full: of this shard's"""

    full: set[int]

    def elsewhere(self, index: int, full: bool) -> None: ...


class OwnerShard:
    """Another shard as the owner of its partitions: where they begin and end, their records and watermarks."""

    def __init__(
        self, partitions: list[RemotePartition], feeds: RemoteFeeds, commands: CommandQueue, admission: Admission,
        quota: Quota, acknowledged: Callable[[int], None], tracer: Tracer,
    ) -> None:  # fmt: skip
        """acknowledged: records that were published to a partition are committed there"""
        self.partitions = partitions
        self._by_index = {partition.index: partition for partition in partitions}
        # True until the owner has said which QoS 2 messages of sessions here it has: nothing is handed over before.
        self._is_undecided = False
        self._feeds, self._commands = feeds, commands
        self._admission, self._quota, self._acknowledged, self._tracer = (
            admission,
            quota,
            acknowledged,
            tracer,
        )

    def joined(self, link: BusLink, hello: m.Hello) -> None:
        """What was published and not acknowledged is published again."""
        is_other = False
        for partition in self.partitions:
            # A successor, whose disk may be another one, says anew what it refuses.
            self._admission.elsewhere(partition.index, False, "")
            first_lsn, next_lsn = hello.partitions[partition.index]
            starts = hello.starts.get(partition.index, [])
            before = partition.run.known
            same_below = partition.run.met(hello.incarnation, starts, next_lsn)
            is_other |= partition.run.known != before
            self._feeds.owner_joined(partition, first_lsn, next_lsn, same_below)
            outgoing = partition.outgoing
            if self._is_undecided:
                continue
            if outgoing.pending_bytes:
                link.say(m.Resume(partition.index, outgoing.committed_there))
            else:
                outgoing.attach(link.say, outgoing.committed_lsn)
        if is_other:
            self._feeds.other_run()

    def undecided(self, tags_from: Sequence[int]) -> None:
        """Hand nothing over before the owner has said which QoS 2 messages it has, from these lsns on."""
        self._is_undecided = True
        for partition in self.partitions:
            partition.outgoing.detach()
            partition.outgoing.committed_there = tags_from[partition.index]

    def decided(self, link: BusLink | None) -> None:
        """It has: hand over what was published meanwhile. link: None while it is away"""
        self._is_undecided = False
        for partition in self.partitions:
            if link is not None:
                partition.outgoing.attach(link.say, partition.outgoing.committed_lsn)

    def lost(self) -> None:
        for partition in self.partitions:
            partition.outgoing.detach()
            self._quota.elsewhere(partition.index, False)

    @property
    def unacknowledged_bytes(self) -> int:
        """Published and not acknowledged; partitions that cannot be written do not count: nothing would come."""
        offline = self._admission.is_offline_elsewhere
        return sum(p.outgoing.pending_bytes for p in self.partitions if not offline(p.index))

    def resumed(self, link: BusLink, message: m.Resumed) -> None:
        outgoing = self._by_index[message.partition].outgoing
        outgoing.attach(link.say, max(message.sequence, outgoing.committed_lsn))
        self._acknowledged(message.partition)

    def numbered(self, message: m.Numbered, _: memoryview) -> None:
        self._by_index[message.partition].outgoing.numbered(message.publishers)

    def publishers(self, message: m.Publishers, _: memoryview) -> None:
        self._by_index[message.partition].name_publishers(message.first, message.names)

    def mark(self, message: m.Mark, _: memoryview) -> None:
        partition = self._by_index[message.partition]
        partition.first_lsn = message.first_lsn
        if message.is_last or partition.outgoing.has_shown_none:
            partition.outgoing.owner_stopped(message.is_last)
        if partition.outgoing.acknowledged(message.sequence, message.committed_lsn):
            self._acknowledged(message.partition)
        self._commands.put(c.RemoteWatermark(message.partition, message.live_lsn, message.committed_lsn))

    def rows(self, message: m.Rows, raw: memoryview) -> None:
        self._by_index[message.partition].name_topics(message.topics)
        rows, frames = raw[: message.rows_len], raw[message.rows_len :]
        chunk = Chunk(message.base_lsn, message.count, message.base_ts, message.flags, rows, frames)
        if message.traced:
            chunk.traces = self._tracer.received(message.traced, 0, message.sent_us, is_published=False)
        self._commands.put(c.RemoteChunk(message.partition, chunk))

    def refusing(self, message: m.Refusing, _: memoryview) -> None:
        self._admission.elsewhere(message.partition, message.full, message.why)

    def retained_full(self, message: m.RetainedFull, _: memoryview) -> None:
        self._quota.elsewhere(message.partition, message.full)

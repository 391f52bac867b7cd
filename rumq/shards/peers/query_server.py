"""Answers to other shards about this shard's partitions: chunks, where a replay begins, what is retained; and after a
crash, how far their records are in the log, and which inbound QoS 2 messages of their sessions it has.

What may wait for a disk runs on the reader thread."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol, TypeVar

from commitlog import Chunk, Gap, OffsetTrimmed, Partition, Store
from commitlog.chunk import FLAG_QOS
from commitlog.errors import NotInMemory
from commitlog.format.joined_chunks import joined
from commitlog.kernels.rows import first_seen
from commitlog.log.partition_types import PartitionReader, PartitionWriter
from commitlog.row_layout import tag_publishers
from router.matching.retained import RetainedRecord
from router.shard import ShardRouter
from rumq.loop.ports import Call, FaultGuard, Placement, ReadPool, Timers
from rumq.loop.read_gate import ReadGate
from rumq.net.frames import Raw
from rumq.shards.bus import messages as m
from rumq.shards.bus.bus_link import BusLink

READ_BYTES = 1 << 18
RETAINED_A_PIECE = 256
BUSY_SECONDS = 0.002  # until a full bus is tried again
UNCOMMITTED_SECONDS = 0.005  # until records that are not committed yet are tried again
T = TypeVar("T")
Found = tuple[dict[int, int], list[RetainedRecord]]  # partition -> lsn, and what was retained there
SearchStart = Callable[[m.StartQuestion, Callable[[Found | None, BaseException | None], None]], None]


class ForwardedNames(Protocol):
    """What another shard was sent, as `rumq.shards.bus.record_forwarder`. introduce: names the publishers of records"""

    def sent(self, index: int) -> int: ...

    def introduce(self, index: int, rows: Raw, own: dict[int, bytes] | None = None) -> None: ...


class Asker(NamedTuple):
    """link: the one that the question came over"""

    shard: int
    link: BusLink
    names: ForwardedNames


class QueryServer:
    def __init__(
        self, store: Store, router: ShardRouter, reader: ReadPool, timers: Timers,
        search_start: SearchStart, leave_behind: Callable[[int, int, Callable[[], None]], None], *, reads: ReadGate,
    ) -> None:  # fmt: skip
        """search_start: of this shard's partitions; leave_behind: counts what readers here lose of a partition below an
        lsn, then calls back; reads: where questions wait until this shard may answer them"""
        self._reads = reads
        self._store, self._router, self._reader, self._timers = store, router, reader, timers
        self._search_start, self._leave_behind = search_start, leave_behind

    def when_newest(self, call: Call) -> None:
        """Once what is here is the newest."""
        self._reads.when_open(call)

    # Chunks

    def read(self, asker: Asker, question: m.ReadFrom) -> None:
        partition = self._store.partitions[question.partition]
        assert isinstance(partition, PartitionWriter)
        limit = self._router.feeds[question.partition].visible_lsn
        try:
            found = [chunk for chunk in partition.read(question.lsn, READ_BYTES) if chunk.next_lsn <= limit]
            if found:
                self._send_chunks(asker, question, found, None)
                return
        except (NotInMemory, OffsetTrimmed):
            pass
        self._reader.submit(
            partition.cold_read(question.lsn, READ_BYTES).run,
            lambda chunks, fault: self._send_chunks(asker, question, chunks or [], fault),
        )

    def _send_chunks(
        self, asker: Asker, question: m.ReadFrom, chunks: Iterable[Chunk | Gap], fault: BaseException | None
    ) -> None:
        partition = self._store.partitions[question.partition]
        pieces: list[m.Piece] = []
        raw: list[Raw] = []
        names: m.Names = []
        seen = bytearray(len(partition.topic_names))
        chunks = list(chunks)
        for chunk in chunks:
            if isinstance(chunk, Chunk):
                asker.names.introduce(question.partition, chunk.rows, chunk.publishers)
        for chunk in joined(chunks):
            if isinstance(chunk, Gap):
                pieces.append(m.Piece(chunk.base_lsn, chunk.next_lsn, 0, 0, 0, 0, chunk.why))
                continue
            names += new_names(partition, chunk.rows, seen)
            raw += [chunk.rows, chunk.frames]
            pieces.append(
                m.Piece(chunk.base_lsn, chunk.next_lsn, chunk.base_ts, chunk.flags, len(chunk.rows), len(chunk.frames))
            )
        answer = m.Chunks(
            question.request, question.partition, partition.first_lsn, names, pieces, str(fault) if fault else ""
        )
        asker.link.say(answer, *raw)

    # Beginnings

    def find_start(self, asker: Asker, question: m.StartQuestion) -> None:
        def done(found: Found | None, fault: BaseException | None) -> None:
            lsns, retained = found or ({}, [])
            introduce(asker, retained)
            for at in range(0, len(retained), RETAINED_A_PIECE):
                some = items_of(retained[at : at + RETAINED_A_PIECE])
                asker.link.say(m.SearchAnswer(question.request, {}, some, more=True))
            asker.link.say(m.SearchAnswer(question.request, lsns, [], fault=str(fault) if fault else ""))

        self._reads.when_open(lambda: self._search_start(question, done))

    def find_retained(self, asker: Asker, question: m.RetainedQuestion) -> None:
        self._reads.when_open(lambda: self._find_retained(asker, question))

    def _find_retained(self, asker: Asker, question: m.RetainedQuestion) -> None:
        """Some in each turn: a filter may match a million."""
        link = asker.link
        below = [question.below.get(feed.index, 0) for feed in self._router.feeds]
        view = self._router.view_of(question.topic_filter)
        # The asker may stand behind us: what has replaced these is to come to it, as live messages. Those that are on
        # their way come first, and what they have replaced must not come behind them. Where the asker was away, the
        # live ones are all that it gets: a message with RETAIN is none that was replaced before its client asked.
        messages = []
        if question.is_met:
            sent = [asker.names.sent(feed.index) for feed in self._router.feeds]
            messages = view.replaced(question.topic_filter, below, sent)
        search = view.search(question.topic_filter, below)

        def go_on() -> None:
            nonlocal messages
            if link.closed:
                return
            if link.transport.room > 0:
                messages += search.next_messages()
                if messages or search.over:
                    introduce(asker, messages)
                    link.say(m.SearchAnswer(question.request, {}, items_of(messages), more=not search.over))
                    messages = []
            if not search.over:
                self._timers.later(0.0 if link.transport.room > 0 else BUSY_SECONDS, go_on)

        go_on()

    # Retention

    def leaving(self, asker: Asker, question: m.Leaving) -> None:
        """Retention of a partition of the asker is about to remove records."""
        self._leave_behind(question.partition, question.next_lsn, lambda: asker.link.say(m.Wanted(question.request)))


class RestartQueries:
    """Questions of a shard that has died, or whose records were on their way to one that has."""

    def __init__(
        self, store: Store, reader: ReadPool, timers: Timers, placement: Placement, guard: FaultGuard,
        urgent: Callable[[int], None],
    ) -> None:  # fmt: skip
        """urgent: somebody waits until a partition is committed"""
        self._store, self._reader, self._timers = store, reader, timers
        self._placement, self._guard, self._urgent = placement, guard, urgent

    def find_tags(self, asker: Asker, question: m.FindTags) -> None:
        wanted = [p for p in self._store.own if p.index in question.from_lsns]

        def search() -> m.Tags:
            ends = {partition.index: partition.committed_lsn for partition in wanted}
            tags = [
                (client_id, packet_id)
                for partition in wanted
                for client_id, packet_id in log_tags(self._store, partition, question.from_lsns[partition.index])
                if self._placement.home(client_id) == asker.shard
            ]
            return m.Tags(question.request, tags, ends)

        def found(tags: m.Tags | None) -> None:
            asker.link.say(tags or m.Tags(question.request, []))

        self._search_committed(asker, wanted, search, found)

    def resume(self, asker: Asker, source: int, question: m.Resume) -> None:
        """Find the last record that the asker published over earlier links. source: the asker's incarnation"""
        partition = next(p for p in self._store.own if p.index == question.partition)

        def search() -> int:
            last = 0
            for chunk in self._store.chunks_with(partition, 0, question.lsn):
                if isinstance(chunk, Chunk):
                    for each, sequence in struct.iter_unpack("<QQ", chunk.sources):
                        if each == source:
                            last = max(last, sequence)
            return last

        def found(sequence: int | None) -> None:
            asker.link.say(m.Resumed(question.partition, sequence or 0))

        self._search_committed(asker, [partition], search, found)

    def _search_committed(
        self, asker: Asker, partitions: Sequence[PartitionWriter], search: Callable[[], T],
        found: Callable[[T | None], None],
    ) -> None:  # fmt: skip
        """Search files once everything that has come from the asker is in them: where its link alone was lost, this
        shard has records that are not written yet, and what it does not tell of is published once more."""
        ends = [(p, p.next_lsn) for p in partitions]

        def begin() -> None:
            if asker.link.closed:
                return
            if any(p.committed_lsn < end for p, end in ends):
                self._timers.later(UNCOMMITTED_SECONDS, begin)
                return
            self._reader.submit(search, done)

        def done(answer: T | None, fault: BaseException | None) -> None:
            if fault is not None:
                self._guard.given_up(asker.link, fault)
            elif not asker.link.closed:
                found(answer)

        for partition in partitions:
            self._urgent(partition.index)
        begin()


def introduce(asker: Asker, messages: Iterable[RetainedRecord]) -> None:
    """Name the publishers of retained messages."""
    rows: dict[int, list[bytes]] = {}
    for message in messages:
        rows.setdefault(message.partition, []).append(bytes(message.row))
    for index, of_partition in rows.items():
        asker.names.introduce(index, b"".join(of_partition))


def items_of(messages: Iterable[RetainedRecord]) -> list[m.RetainedItem]:
    return [m.RetainedItem(r.topic, r.partition, r.lsn, r.base_ts, bytes(r.row), bytes(r.frame)) for r in messages]


def new_names(partition: PartitionReader, rows: Raw, seen: bytearray) -> m.Names:
    """The names of the topics in some rows, those that are not marked in `seen`; marks them."""
    return [(number, partition.topic_names[number]) for number, _ in first_seen(rows, 0, seen)]


def log_tags(store: Store, partition: Partition, from_lsn: int) -> Iterator[tuple[str, int]]:
    """(client id, session tag << 16 | packet id) of inbound QoS 2 messages in a partition from an lsn on.

    May wait for a disk. raises: OSError"""
    for chunk in store.chunks_with(partition, FLAG_QOS, from_lsn):
        if isinstance(chunk, Gap) or not chunk.tags:
            continue
        names = partition.publisher_names if chunk.publishers is None else chunk.publishers
        for row, publisher, packet_id in tag_publishers(chunk.rows, chunk.tags):
            if chunk.base_lsn + row >= from_lsn:
                yield names.get(publisher, b"").decode(), packet_id

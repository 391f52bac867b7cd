"""What another shard asks about our partitions, and the answers: chunks, where a replay begins, what is retained.

What may wait for a disk runs on the reader thread, one question after the other. Knows no client."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from commitlog import Chunk, Gap, OffsetTrimmed, Partition, Store
from commitlog.chunk import FLAG_QOS, HEADER_BYTES
from commitlog.errors import NotInMemory
from commitlog.kernels.rows import first_seen, lay_out
from commitlog.row_layout import tag_publishers
from commitlog.write_group import pieced
from router.retained import Retained
from rumq.shards.bus import messages as m
from rumq.shards.bus.bus_link import BusLink
from rumq.shards.delivery.replay_start import SEARCHES, lookups_for

if TYPE_CHECKING:
    from rumq.shards.bus.peer import Peer
    from rumq.shards.turn.turn import Driver

READ_BYTES = 1 << 18
RETAINED_A_PIECE = 256
BUSY_SECONDS = 0.002  # the bus is full: look again after that


class QueryServer:
    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._answers: dict[type, Callable[[Peer, BusLink, Any], None]] = {
            m.ReadFrom: self._read, m.FindStart: self._find_start, m.FindRetained: self._find_retained,
            m.FindTags: self._find_tags, m.Leaving: self._leaving,
        }  # fmt: skip

    def answer(self, peer: Peer, link: BusLink, question: Any) -> None:
        self._answers[type(question)](peer, link, question)

    # Chunks

    def _read(self, peer: Peer, link: BusLink, question: m.ReadFrom) -> None:
        partition = self._driver.store.partitions[question.partition]
        limit = self._driver.shard.feeds[question.partition].visible_lsn
        try:
            found = [chunk for chunk in partition.read(question.lsn, READ_BYTES) if chunk.next_lsn <= limit]
            if found:
                self._send_chunks(peer, link, question, found, None)
                return
        except (NotInMemory, OffsetTrimmed):
            pass
        read = partition.cold_read(question.lsn, READ_BYTES)
        self._driver.reader.submit(
            read.run, lambda chunks, fault: self._send_chunks(peer, link, question, chunks or [], fault)
        )

    def _send_chunks(
        self,
        peer: Peer,
        link: BusLink,
        question: m.ReadFrom,
        chunks: list[Any],
        fault: BaseException | None,
    ) -> None:
        partition = self._driver.store.partitions[question.partition]
        pieces: list[m.Piece] = []
        raw: list[Any] = []
        names: m.Names = []
        seen = bytearray(len(partition.topic_names))
        for chunk in joined(chunks):
            if isinstance(chunk, Gap):
                pieces.append(m.Piece(chunk.base_lsn, chunk.next_lsn, 0, 0, 0, 0, chunk.why))
                continue
            names += named(partition, chunk.rows, seen)
            raw += [chunk.rows, chunk.frames]
            pieces.append(
                m.Piece(
                    chunk.base_lsn, chunk.next_lsn, chunk.base_ts, chunk.flags, len(chunk.rows), len(chunk.frames)
                )
            )  # fmt: skip
        answer = m.Chunks(
            question.request, question.partition, partition.first_lsn, names, pieces, str(fault) if fault else ""
        )  # fmt: skip
        peer.introduce(question.partition)
        link.say(answer, *raw)

    # Beginnings

    def _find_start(self, peer: Peer, link: BusLink, question: m.FindStart) -> None:
        driver = self._driver
        find = lookups_for(
            driver.store, driver.shard.retained, question.ts_us, question.topic, question.offset, question.retained
        )  # fmt: skip

        def done(found: Any, fault: BaseException | None) -> None:
            lsns, retained = found or ({}, [])
            self._send_found(peer, link, question.request, lsns, retained, str(fault) if fault else "")

        driver.reader.submit(find, done, SEARCHES)

    def _find_retained(self, peer: Peer, link: BusLink, question: m.FindRetained) -> None:
        """Some in each turn: a filter may match a million."""
        driver = self._driver
        below = [question.below.get(feed.index, 0) for feed in driver.shard.feeds]
        search = driver.shard.view_of(question.topic_filter).search(question.topic_filter, below)

        def go_on() -> None:
            if link.closed:
                return
            if link.transport.room > 0:
                messages = search.next_messages()
                if messages or search.over:
                    peer.introduce_all()
                    link.say(m.Found(question.request, {}, items_of(messages), more=not search.over))
            if not search.over:
                driver.later(0.0 if link.transport.room > 0 else BUSY_SECONDS, go_on)

        go_on()

    def _send_found(
        self,
        peer: Peer,
        link: BusLink,
        request: int,
        lsns: dict[int, int],
        retained: list[Retained],
        fault: str,
    ) -> None:
        peer.introduce_all()
        for at in range(0, len(retained), RETAINED_A_PIECE):
            link.say(m.Found(request, {}, items_of(retained[at : at + RETAINED_A_PIECE]), more=True))
        link.say(m.Found(request, lsns, [], fault=fault))

    # Retention of the other's partitions

    def _leaving(self, peer: Peer, link: BusLink, question: m.Leaving) -> None:
        self._driver.losses.leave_behind(
            question.partition, question.next_lsn, lambda: link.say(m.Wanted(question.request))
        )

    # What the other shard lost

    def _find_tags(self, peer: Peer, link: BusLink, question: m.FindTags) -> None:
        """Nothing of the asker's may still be on its way to the log when it is searched."""
        driver = self._driver
        wanted = [p for p in driver.store.own if p.index in question.from_lsns]
        ends = [(p, p.next_lsn) for p in wanted]

        def search() -> list[tuple[str, int]]:
            return [
                (client_id, packet_id)
                for partition in wanted
                for client_id, packet_id in log_tags(
                    driver.store, partition, question.from_lsns[partition.index]
                )
                if driver.home(client_id) == peer.index
            ]

        def begin() -> None:
            if any(p.committed_lsn < end for p, end in ends):
                driver.later(0.005, begin)
                return
            driver.reader.submit(search, done)

        def done(tags: list[tuple[str, int]] | None, fault: BaseException | None) -> None:
            if fault is not None:
                driver.given_up(link, fault)
                return
            link.say(m.Tags(question.request, tags or []))

        for partition in wanted:
            driver.writing.urgent(partition.index)
        begin()

    def resume(self, peer: Peer, source: int, question: m.Resume) -> None:
        """Look for the last of what the other shard handed over before we died."""
        driver = self._driver
        partition = driver.store.partitions[question.partition]
        link = peer.link

        def search() -> int:
            last = 0
            for chunk in driver.store.chunks_with(partition, 0, question.lsn):
                for one, sequence in struct.iter_unpack("<QQ", getattr(chunk, "sources", b"")):
                    if one == source:
                        last = max(last, sequence)
            return last

        def done(sequence: int | None, fault: BaseException | None) -> None:
            if link is None:
                return
            if fault is not None:
                driver.given_up(link, fault)
            else:
                link.say(m.Resumed(question.partition, sequence or 0))

        driver.reader.submit(search, done)


def joined(chunks: list[Any]) -> Iterator[Chunk | Gap]:
    """Consecutive small chunks as larger ones: what is in memory is as small as the turns in which it came."""
    run: list[Chunk] = []
    for chunk in chunks:
        if isinstance(chunk, Chunk) and (not run or run[-1].next_lsn == chunk.base_lsn):
            run.append(chunk)
            continue
        for piece in pieced(run):
            yield as_one(piece)
        run = []
        if isinstance(chunk, Chunk):
            run.append(chunk)
        else:
            yield chunk
    for piece in pieced(run):
        yield as_one(piece)


def as_one(chunks: list[Chunk]) -> Chunk:
    if len(chunks) == 1:
        return chunks[0]
    rows_end = HEADER_BYTES + sum(len(chunk.rows) for chunk in chunks)
    end = rows_end + sum(len(chunk.frames) for chunk in chunks)
    buffer = bytearray(end + -end % 4)  # the kernel sees words
    flags, tags = lay_out(chunks, buffer, rows_end)
    first, last = chunks[0], chunks[-1]
    view = memoryview(buffer)
    return Chunk(
        first.base_lsn, last.next_lsn - first.base_lsn, first.base_ts, flags, view[HEADER_BYTES:rows_end],
        view[rows_end:end], tags,
    )  # fmt: skip


def items_of(messages: list[Retained]) -> list[m.RetainedItem]:
    return [
        m.RetainedItem(r.topic, r.partition, r.lsn, r.base_ts, bytes(r.row), bytes(r.frame)) for r in messages
    ]


def named(partition: Any, rows: Any, seen: bytearray) -> m.Names:
    """The names of the topics in some rows, those that are not marked in `seen`; marks them."""
    return [(number, partition.topic_names[number]) for number, _ in first_seen(rows, 0, seen)]


def log_tags(store: Store, partition: Partition, from_lsn: int) -> Iterator[tuple[str, int]]:
    """(client id, session tag << 16 | packet id) of inbound QoS 2 messages in a partition from an lsn on.

    May wait for a disk. raises: OSError"""
    for chunk in store.chunks_with(partition, FLAG_QOS, from_lsn):
        if isinstance(chunk, Gap) or not chunk.tags:
            continue
        for row, publisher, packet_id in tag_publishers(chunk.rows, chunk.tags):
            if chunk.base_lsn + row >= from_lsn:
                yield partition.publisher_names[publisher].decode(), packet_id

"""All other shards: links to them made and made anew, interest confirmed, questions put to the one that knows.

With one shard there are none, and nothing here costs anything. Knows no client."""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from commitlog import Chunk, Gap
from router import commands as c
from router.effects import FindRetained, FindStart
from router.reader import Reader
from router.retained import Retained
from rumq.net.connection import Connection
from rumq.shards.bus import messages as m
from rumq.shards.bus.bus_link import BusLink
from rumq.shards.bus.peer import Peer
from rumq.shards.bus.remote_partition import RemotePartition
from rumq.shards.processes.fd_passing import FdPassing

if TYPE_CHECKING:
    from rumq.shards.turn.turn import Driver

BUS_BYTES = 4 << 20  # what may wait for another shard before readers there go on from the log


class Peers:
    def __init__(self, driver: Driver, doors: FdPassing | None, count: int) -> None:
        self._driver = driver
        self._doors = doors
        self.others: dict[int, Peer] = {}
        self.has_begun = False  # what is wanted here is known: sessions have been restored
        self.wants_publishers = False  # somebody here asks who published
        self.has_publishers = count < 2  # every other shard tells that
        self.confirmed: set[str] = set()  # filters whose records every other shard sends
        self._asking: Counter[str] = (
            Counter()
        )  # filters that others have been asked to send, and have not answered
        for index in range(count):
            if index != driver.index:
                partitions = [
                    p for p in driver.store.partitions if isinstance(p, RemotePartition) and p.owner == index
                ]
                self.others[index] = Peer(driver, index, partitions)
        if doors is not None:
            doors.takers["bus"] = self._linked

    # Links

    def dial(self) -> None:
        """Link up with the shards before us; those behind us do so themselves."""
        for index in range(self._driver.index):
            self._dial(index)

    def _dial(self, index: int) -> None:
        assert self._doors is not None
        ours, theirs = self._doors.pair()
        self._doors.give(index, "bus", theirs.detach(), str(self._driver.index))
        self._attach(index, ours)

    def _linked(self, sock: socket.socket, peer: str, _: bytes, __: int) -> None:
        """Another shard has linked up with us."""
        self._attach(int(peer), sock)

    def _attach(self, index: int, sock: socket.socket) -> None:
        peer, pump = self.others[index], self._driver.pump
        if peer.link is not None:
            pump.read_out(peer.link.transport)  # of a run before: what it handed over counts
        connection = Connection(pump, sock, f"shard {index}", BUS_BYTES)
        link = BusLink(connection, peer.heard, peer.lost, peer.drained)
        connection.link = link  # type: ignore[assignment]
        pump.add(connection)
        peer.linked(link)

    def lost(self, peer: Peer, why: str) -> None:
        if self._driver.drain:
            return  # all stop, one a little before the other
        self._driver.tell("shard.lost", shard=peer.index, why=why)
        if peer.index < self._driver.index:
            self._dial(peer.index)

    def known(self, peer: Peer) -> None:
        self._driver.tell("shard.linked", shard=peer.index)

    @property
    def all_were_begun(self) -> bool:
        """Whether every shard has said what members of our shares it has."""
        return all(peer.was_begun and not peer.said_early for peer in self.others.values())

    @property
    def relied_on(self) -> set[str]:
        """Filters that every shard sends, or has been asked to: one may have said so and died before all had."""
        return self.confirmed.union(self._asking)

    @property
    def all_known(self) -> bool:
        return all(peer.is_known for peer in self.others.values())

    def begin(self) -> None:
        """Sessions have been restored: have everything sent that they want."""
        self.has_begun = True
        self.confirmed = set(self._driver.shard.groups.local_filters)
        self._driver.shard.groups.take_changes()
        for peer in self.others.values():
            peer.begin()

    def stands(self, partition: RemotePartition, first_lsn: int, next_lsn: int) -> None:
        """Its owner has said how far a partition goes."""
        feed: Any = self._driver.shard.feeds[partition.index]
        partition.first_lsn = first_lsn
        if not partition.is_met:
            partition.is_met = True
            partition.next_lsn = next_lsn
            feed.start_at(next_lsn)
            return
        feed.owner_restarted()
        self._forget_aliases()
        # Messages of QoS 0 may have been seen here, or read, that were never written; their lsns are given out again.
        partition.next_lsn = min(partition.next_lsn, next_lsn)
        if next_lsn < feed.visible_lsn:
            feed.truncate(next_lsn)
        self._driver.shard.sharing.truncate(partition.index, next_lsn)
        for session in self._driver.registry.sessions.values():
            for reader in session.subscriber.readers():
                reader.cursors[partition.index] = min(reader.cursors[partition.index], next_lsn)

    def _forget_aliases(self) -> None:
        """Topics may have other ids now, by which it is known what a client was told."""
        for session in self._driver.registry.sessions.values():
            if session.link is not None and session.link.flow is not None:
                session.link.flow.aliases = None

    # Retention

    def tell_needs(self, wanted_lsn: Callable[[int], int | None]) -> None:
        """Tell each owner which of its records lasting sessions here have not had."""
        for peer in self.others.values():
            peer.tell_needs(
                {p.index: lsn for p in peer.partitions if (lsn := wanted_lsn(p.index)) is not None}
            )

    def wanted_lsn(self, index: int, here: int | None) -> int | None:
        """The first record of a partition of ours that a lasting session has not had, here or in another shard."""
        wanted = [peer.needs[index] for peer in self.others.values() if index in peer.needs]
        return min(wanted if here is None else [*wanted, here], default=None)

    def leave_behind(self, index: int, next_lsn: int, each: Callable[[], None]) -> None:
        """Tell the others that retention is about to take what is below `next_lsn` of a partition of ours; `each` is
        called for each of them that has counted what its readers lose by it."""
        for peer in self.others.values():
            peer.ask(lambda n: m.Leaving(n, index, next_lsn), lambda *_: each())

    # The end

    def drain(self) -> None:
        """Tell the others that nothing more is published from here."""
        for peer in self.others.values():
            if peer.link is not None:
                peer.link.say(m.Drained())

    @property
    def are_drained(self) -> bool:
        """Whether what we handed over is committed, and nothing more will be handed to us."""
        return all(
            peer.link is None or (peer.is_drained and not peer.unacknowledged_bytes)
            for peer in self.others.values()
        )

    def close(self) -> None:
        for peer in self.others.values():
            if peer.link is not None:
                peer.link.closed = True

    # A turn

    def end_turn(self, monotonic: float) -> None:
        for peer in self.others.values():
            peer.end_turn(monotonic)

    def changes(self) -> None:
        """After a step: tell which filters are wanted here that were not, and which are not any more."""
        groups = self._driver.shard.groups
        if not groups.changed_filters or not self.has_begun:
            return
        fresh, gone = groups.take_changes()
        # What is asked for just now is looked at again when that is answered.
        gone = [f for f in gone if f not in self._asking]
        for peer in self.others.values():
            if gone and peer.link is not None:
                peer.link.say(m.Unwant(gone))
        self.confirmed.difference_update(gone)
        self.confirm([f for f in fresh if f not in self._asking], lambda: None)

    # Asking

    def confirm(self, filters: Iterable[str], then: Callable[[], None], *, marks: bool = False) -> bool:
        """Whether every shard sends what these filters match; if not, they are asked to, and `then` is called."""
        needed = [f for f in filters if f not in self.confirmed]
        if not needed or not self.others:
            return True
        left = set(self.others)
        self._asking.update(needed)

        def wanted(index: int) -> None:
            left.discard(index)
            if not left:
                self._asking.subtract(needed)
                self._asking = +self._asking
                self.confirmed.update(needed)
                # If it is not subscribed to after all, that is found out after the next step.
                self._driver.shard.groups.changed_filters.update(dict.fromkeys(needed))
                then()

        for index, peer in self.others.items():
            peer.ask(lambda n: m.Want(n, needed, marks), lambda *_, index=index: wanted(index))
        return False

    def ask_publishers(self, then: Callable[[], None]) -> None:
        """Have every other shard tell who publishes, now and from now on; `then` is called when all do."""
        self.wants_publishers = True
        left = set(self.others)

        def told(index: int) -> None:
            left.discard(index)
            if not left:
                self.has_publishers = True
                then()

        for index, peer in self.others.items():
            peer.ask(m.WantPublishers, lambda *_, index=index: told(index))

    def confirm_all(self, asked: Iterable[tuple[str, str]], then: Callable[[], None]) -> bool:
        """As `confirm`, of (filter as written, plain filter); shares of other homes are joined there first."""
        plain: list[str] = []
        away: dict[str, str] = {}
        for written, topic_filter in asked:
            if written.startswith("$share/") and self._driver.home(written) != self._driver.index:
                away[written] = topic_filter
            else:
                plain.append(topic_filter)
        left = len(away)

        def one_less() -> None:
            nonlocal left
            left -= 1
            if left == 0:
                then()

        if self.confirm(plain, one_less):
            if not away:
                return True
        else:
            left += 1
        for key, topic_filter in away.items():
            self.join_share(key, topic_filter, one_less)
        return False

    def join_share(self, key: str, topic_filter: str, then: Callable[[], None]) -> None:
        """Have the home of a share, another shard, begin it for a client here, which joins in `then`."""
        peer = self.others[self._driver.home(key)]

        def joined(answer: m.Wanted, _: memoryview) -> None:
            then()
            self._driver.after_step(tell)

        def tell() -> None:
            # The client may be gone by now.
            share = self._driver.shard.sharing.shares.get(key)
            if share is None and peer.link is not None:
                self._driver.shares.leave(peer.link, key, topic_filter)

        peer.ask(partial(m.ShareJoin, key=key, topic_filter=topic_filter), joined)

    def read(self, index: int, lsn: int, done: Callable[[list[Any] | None, Exception | None], None]) -> None:
        """Read whole chunks of another shard's partition, from `lsn` on."""
        partition: RemotePartition = self._driver.store.partitions[index]

        def answered(answer: m.Chunks, raw: memoryview) -> None:
            partition.first_lsn = answer.first_lsn
            partition.name_topics(answer.topics)
            done(chunks_of(answer, raw), OSError(answer.fault) if answer.fault else None)

        self.others[partition.owner].ask(lambda n: m.ReadFrom(n, index, lsn), answered)

    def find_retained(self, effect: FindRetained) -> None:
        for peer in self.others.values():
            below = {p.index: effect.below[p.index] for p in peer.partitions}
            if below:
                question = partial(m.FindRetained, topic_filter=effect.subscription.topic_filter, below=below)
                peer.ask(question, partial(self._retained_found, effect))

    def _retained_found(self, effect: FindRetained, answer: m.Found, _: memoryview) -> None:
        if answer.retained:
            messages = retained_of(answer)
            self._driver.commands.put(c.RetainedFound(effect.reader, effect.subscription, messages))

    def find_start(
        self, effect: FindStart, local: Callable[[Callable[..., None]], None] | None, owner: int | None
    ) -> None:
        """Find where a replay begins in every partition, or in the one that `owner` has.

        local: searches our own, and calls back with (lsns, retained)"""
        (subscription,) = effect.reader.group.wants.subscriptions
        lsns: dict[int, int] = {}
        retained: list[Retained] = []
        peers = [p for i, p in self.others.items() if owner is None or i == owner]
        left = len(peers) + (local is not None)

        def found(more: dict[int, int], messages: list[Retained]) -> None:
            nonlocal left
            lsns.update(more)
            retained.extend(messages)
            left -= 1
            if not left:
                self._start(effect.reader, lsns, retained)

        def answered(answer: m.Found, _: memoryview) -> None:
            if answer.more:
                retained.extend(retained_of(answer))
            else:
                found(answer.lsns, retained_of(answer))

        def ask() -> None:
            for peer in peers:
                peer.ask(
                    lambda n: m.FindStart(n, effect.ts_us, effect.topic, effect.offset, effect.retained), answered
                )  # fmt: skip
            if local is not None:
                local(found)

        if self.confirm([subscription.topic_filter], ask, marks=True):
            ask()

    def _start(self, reader: Reader, lsns: dict[int, int], retained: list[Retained]) -> None:
        for peer in self.others.values():
            for partition in peer.partitions:
                feed: Any = self._driver.shard.feeds[partition.index]
                feed.drop_cached()
        self._driver.commands.put(c.StartFound(reader, lsns, retained))

    def find_tags(self, from_lsns: list[int], done: Callable[[int, list[tuple[str, int]]], Any]) -> None:
        """Inbound QoS 2 messages of our sessions in others' partitions; `done(shard, tags)` for each shard."""
        for peer in self.others.values():
            wanted = {p.index: from_lsns[p.index] for p in peer.partitions}
            peer.ask(partial(m.FindTags, from_lsns=wanted), partial(tags_found, peer.index, done))


def tags_found(index: int, done: Callable[..., Any], answer: m.Tags, _: memoryview) -> None:
    done(index, answer.tags)


def chunks_of(answer: m.Chunks, raw: memoryview) -> list[Chunk | Gap]:
    found: list[Chunk | Gap] = []
    at = 0
    for piece in answer.pieces:
        if piece.why:
            found.append(Gap(piece.base_lsn, piece.next_lsn, piece.why))
            continue
        rows = bytes(raw[at : at + piece.rows_len])
        at += piece.rows_len
        frames = bytes(raw[at : at + piece.frames_len])
        at += piece.frames_len
        count = piece.next_lsn - piece.base_lsn
        found.append(Chunk(piece.base_lsn, count, piece.base_ts, piece.flags, rows, frames))
    return found


def retained_of(answer: m.Found) -> list[Retained]:
    return [Retained(r.topic, r.partition, r.lsn, r.base_ts, r.row, r.frame) for r in answer.retained]

"""Checkpoints of the session journal: where every reader and shared subscription stands.

docs/reference/session-journal.md.
Built from the router's and the sessions' state, written by `rumq.shards.recovery.journal_writer`."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence

from commitlog.log.partition_types import PartitionReader
from router.readers.shared_group import SharedGroup
from router.readers.slots import partition_of, reader_of
from router.shard import ShardRouter
from rumq.session.journal import entries as e
from rumq.session.journal.reader_positions import Watermarks, cursors_of
from rumq.session.journal.recorder import JournalRecorder
from rumq.session.state.session import Session
from rumq.shards.bus.remote_partition import RemotePartition

UnsafeTags = dict[tuple[int, int], set[int]]  # (partition, publisher) -> packet ids


class CheckpointBuilder:
    """retained_from: of each partition, retained messages below this lsn are in the last snapshot."""

    def __init__(
        self, partitions: Sequence[PartitionReader], recorder: JournalRecorder, router: ShardRouter,
        session_of: Callable[[str], Session | None],
    ) -> None:  # fmt: skip
        """partitions: those that the vectors in entries refer to"""
        self._partitions, self._recorder, self._router = partitions, recorder, router
        self._session_of = session_of
        self.retained_from = [0] * len(partitions)
        self._retained_changes = 0  # of the view, when `retained_from` was true
        # Those of the last checkpoint that had something to assign again: a member may have acknowledged it since.
        self._unsettled: list[SharedGroup] = []

    def watermarks(self) -> Watermarks:
        return [(feed.mark(False), feed.mark(True)) for feed in self._router.feeds]

    def entries(self, now_us: int, *, whole: bool = False) -> list[e.JournalEntry]:
        """The checkpoint, behind the inbound QoS 2 packet ids that have changed.

        whole: with every shared group; else with those that have moved, as those that were restored have"""
        watermarks = self.watermarks()
        moved = self._router.delivery.groups.take()
        groups: Iterable[SharedGroup] = dict.fromkeys([*self._unsettled, *moved])
        for group in moved:
            if self._router.sharing.shares.get(group.key) is not group:  # it has ended
                self._router.delivery.groups.maybe_behind.pop(group, None)
        if whole:
            groups = self._router.sharing.shares.values()
        if not self.retained_changed():
            self.retained_from = [live for live, _ in watermarks]
        entries = self._changed_packet_ids()
        entries.append(
            e.Checkpoint(
                now_us,
                [p.committed_lsn for p in self._partitions],
                [live for live, _ in watermarks],
                [committed for _, committed in watermarks],
                list(self.retained_from),
                self._readers_behind(watermarks),
                self._shared_groups(groups, watermarks),
                [p.run.known if isinstance(p, RemotePartition) else (0, 0) for p in self._partitions],
            )
        )
        return entries

    def shared_group(self, key: str) -> e.SharedCheckpoint | None:
        """Where one shared subscription with its home here stands; None if no durable member takes part."""
        group = self._router.sharing.shares.get(key)
        return None if group is None else self._shared_group(group, self.watermarks())

    def retained_changed(self) -> bool:
        """Whether retained messages have changed since the last snapshot of them."""
        return self._router.retained.changes != self._retained_changes

    def retained_written(self, from_lsns: list[int], changes: int) -> None:
        """A snapshot has the retained messages below these lsns, as of so many changes of the view."""
        self.retained_from, self._retained_changes = from_lsns, changes

    def unsafe_tags(self) -> UnsafeTags:
        """Inbound QoS 2 messages that a crash could still take back."""
        unsafe: UnsafeTags = {}
        for partition in self._partitions:
            for publisher, packet_id in partition.ack_source.uncommitted_tags():
                unsafe.setdefault((partition.index, publisher), set()).add(packet_id)
        return unsafe

    def _changed_packet_ids(self) -> list[e.JournalEntry]:
        """Open inbound QoS 2 packet ids of sessions in which they changed, without those that a crash could take back:
        of such a message its client would be told that the broker has it, and the log would not have it."""
        qos2_changed = self._recorder.qos2_changed
        if not qos2_changed:
            return []
        unsafe = self.unsafe_tags()
        entries: list[e.JournalEntry] = []
        for number, session in list(qos2_changed.items()):
            without = unsafe_packet_ids(session, unsafe)
            entries.append(open_entry(self._recorder, session, without))
            if not without:
                del qos2_changed[number]
        return entries

    def _readers_behind(self, watermarks: Watermarks) -> dict[int, dict[int, list[int]]]:
        """Session -> reader -> cursors, of connected sessions' readers that are not at the marks."""
        behind: dict[int, dict[int, list[int]]] = {}
        for session in self._recorder.sessions.values():
            if session.link is None:
                continue
            for reader in session.subscriber.readers():
                if not reader.caught_up():
                    behind.setdefault(session.number, {})[reader.number] = cursors_of(reader, watermarks)
        return behind

    def _shared_groups(
        self, groups: Iterable[SharedGroup], watermarks: Watermarks
    ) -> dict[str, e.SharedCheckpoint]:  # fmt: skip
        """Of these groups those that a restart has to know."""
        known = self._router.sharing.shares
        found = {}
        self._unsettled = []
        for group in groups:
            if known.get(group.key) is not group:
                continue  # it has ended
            entry = self._shared_group(group, watermarks)
            if entry is not None:
                found[group.key] = entry
                if entry.returned:
                    self._unsettled.append(group)
        return found

    def _shared_group(self, share: SharedGroup, watermarks: Watermarks) -> e.SharedCheckpoint | None:
        """None: its home is another shard, or no durable member takes part. Of one that is held no shard's members need
        be known yet."""
        if not share.is_here:
            return None
        returned = list(share.returned)
        durable = 0
        for subscriber, member in share.members.items():
            if subscriber.is_shard:
                durable += 1
                returned += member.outstanding
                continue
            session = self._session_of(subscriber.key)
            if session is not None and session.durable:
                durable += 1
            elif session is not None and session.window is not None:
                # Its session ends with the broker: what it has not acknowledged goes to another member.
                returned += [
                    (partition_of(code), lsn, lsn + 1)
                    for _, state, code, lsn in session.window.waiting()
                    if state == 1 and reader_of(code) == member.reader.number
                ]
        if not durable and not share.is_held:
            return None
        cursors = cursors_of(share.reader, watermarks)
        live = [index for index in range(len(cursors)) if share.reader.is_live(index)]
        return e.SharedCheckpoint(cursors, returned, live)


def open_entry(recorder: JournalRecorder, session: Session, without: Container[int]) -> e.OpenPacketIds:
    """Which inbound QoS 2 messages of a session wait for PUBREL. without: packet ids that a crash could take back"""
    number = session.number
    return e.OpenPacketIds(number, open_packet_ids(session, without), recorder.qos2_released.get(number, b""))


def unsafe_packet_ids(session: Session, unsafe: UnsafeTags) -> set[int]:
    """The packet ids of a session's inbound QoS 2 messages that a crash could take back."""
    found: set[int] = set()
    if unsafe:
        for index, publisher in enumerate(session.publishers or ()):
            found |= unsafe.get((index, publisher), set())
    return found


def open_packet_ids(session: Session, without: Container[int] = ()) -> bytes:
    """The inbound QoS 2 packet ids that wait for PUBREL, u16 each."""
    link = session.link
    bits = link.wire.qos2_open if link is not None else session.qos2_open
    if bits is None:
        return b""
    return b"".join(
        (8 * at + bit).to_bytes(2, "little")
        for at, byte in enumerate(bits)
        if byte
        for bit in range(8)
        if byte >> bit & 1 and 8 * at + bit not in without
    )

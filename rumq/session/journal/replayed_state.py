"""The state that the journal's entries add up to: sessions, shares, retained messages, standing orders.
docs/reference/session-journal.md.

`ReplayedState.apply(entries)` in the order of the records; plain data afterwards. Entries about an unknown session are
skipped: the snapshot that was being written when they were has that session later."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from router.readers.slots import RETAINED_CODE, partition_of, reader_of
from rumq.mqtt.kernels.window import Window
from rumq.session.journal import entries as e
from rumq.session.journal.recorder import UNKNOWN_TAG, tag_of
from rumq.session.journal.replayed_session import APPLY, ReplayedSession, ReplayedSubscription
from rumq.session.state.session_owner import Owner


@dataclass(slots=True)
class ReplayedShare:
    """assigned: (partition, lsn) that members were sent since `cursors` were written; live: as of
    `entries.SharedCheckpoint`, until `ReplayedState.settle`"""

    cursors: list[int]
    returned: list[tuple[int, int, int]] = field(default_factory=list)
    assigned: set[tuple[int, int]] = field(default_factory=set)
    live: list[int] = field(default_factory=list)


class ReplayedState:
    """retained_from: retained messages at or above these lsns are in the log only; tags_from: inbound QoS 2 messages

    orders: in force when the journal ended, if their time was not over, by (what, kind, name)
    kept: values by name, as of `KeptValue`
    snapshot: (where the last whole snapshot begins, about what it takes of the disk), as the reader found it; 0: none
    seen: how far each partition was known here at the last checkpoint; empty: there was none
    runs: as of `entries.Checkpoint`, of the last one
    changed: the state was adapted to another log than the journal refers to"""

    def __init__(self) -> None:
        self.layout: tuple[str, ...] = ()
        self.sessions: dict[int, ReplayedSession] = {}
        self.shares: dict[str, ReplayedShare] = {}
        self.retained: dict[str, e.RetainedEntry] = {}
        self.orders: dict[tuple[str, str, str], e.StandingOrder] = {}
        self.kept: dict[bytes, bytes] = {}
        self.retained_from: list[int] = []
        self.tags_from: list[int] = []
        self.seen: list[int] = []
        self.runs: list[tuple[int, int]] = []
        self.last_number = 0
        self.snapshot = (0, 0)
        self.changed = False
        self._snapshot: dict[str, e.RetainedEntry] = {}
        self._apply: dict[type, Callable[[Any], None]] = {
            e.Layout: self._layout, e.SessionOpened: self._opened, e.SessionEnded: self._ended,
            e.Checkpoint: self._checkpoint, e.Shared: self._shared, e.RetainedEntry: self._retained,
            e.SnapshotBegun: self._snapshot_begun, e.SnapshotEnded: self._snapshot_ended,
            e.Subscribed: self._subscribed, e.Sent: self._sent,
        }  # fmt: skip

    def apply(self, entries: list[e.JournalEntry]) -> None:
        for entry in entries:
            apply = self._apply.get(type(entry))
            if apply is not None:
                apply(entry)
                continue
            session = self.sessions.get(entry.number)  # type: ignore[union-attr]
            if session is not None:
                APPLY[type(entry)](session, entry)

    def apply_tag(self, by_client_id: dict[str, list[ReplayedSession]], client_id: str, tag: int) -> None:
        """Apply an inbound QoS 2 message of the log that no `Open` covers: its packet id is open unless released.

        tag: session tag << 16 | packet id; sessions with another tag ignore it
        """
        session_tag, packet_id = tag >> 16, tag & 0xFFFF
        for session in by_client_id.get(client_id, ()):
            if session_tag not in (UNKNOWN_TAG, tag_of(session.number)):
                continue
            session.qos2_changed = True
            session.qos2_tagged.add(packet_id)
            if session.qos2_released.get(packet_id, 0) > 0:
                session.qos2_released[packet_id] -= 1
            else:
                session.qos2_open.add(packet_id)

    # Entries about the shard

    def _layout(self, entry: e.Layout) -> None:
        if self.layout and entry.partitions != self.layout:
            self.remap(entry.partitions, [0] * len(entry.partitions))
        self.layout = entry.partitions
        self.last_number = max(self.last_number, entry.last_number)
        for order in entry.orders:
            key = order.what, order.kind, order.name
            if order.until_us:
                self.orders[key] = order
            else:
                self.orders.pop(key, None)
        for name, value in ((each.name, each.value) for each in entry.kept):
            if value:
                self.kept[name] = value
            else:
                self.kept.pop(name, None)

    def _opened(self, entry: e.SessionOpened) -> None:
        self.last_number = max(self.last_number, entry.number)
        session = self.sessions.get(entry.number)
        if session is None or entry.fresh:
            session = self.sessions[entry.number] = ReplayedSession(
                entry.number, entry.client_id, entry.version, entry.expiry_seconds
            )
        session.version, session.expiry_seconds = entry.version, entry.expiry_seconds
        session.owner = None if entry.mount is None else Owner(entry.user, entry.mount)
        session.attached, session.moving_seconds = True, 0

    def _ended(self, entry: e.SessionEnded) -> None:
        session = self.sessions.pop(entry.number, None)
        if session is None or session.window is None:
            return
        shares = {s.reader: s.entry.asked for s in session.subscriptions.values() if s.kind == "share"}
        for _, state, code, lsn in session.window.waiting():
            asked = shares.get(reader_of(code))
            if state == 1 and asked in self.shares:  # MQTT-4.8.2-5: QoS 2 goes to no other member
                self.shares[asked].returned.append((partition_of(code), lsn, lsn + 1))

    def _checkpoint(self, entry: e.Checkpoint) -> None:
        self.tags_from, self.retained_from = entry.next_lsns, entry.retained
        self.seen, self.runs = list(entry.live), list(entry.runs)
        for session in self.sessions.values():
            if not session.attached:
                continue
            behind = entry.behind.get(session.number, {})
            for subscription in session.subscriptions.values():
                if subscription.kind != "share":
                    watermarks = entry.committed if subscription.kind == "replay" else entry.live
                    number = subscription.reader
                    if number not in session.starts:
                        session.cursors[number] = list(behind.get(number, watermarks))
        for asked, share in entry.shares.items():
            self.shares[asked] = ReplayedShare(list(share.cursors), list(share.returned), live=share.live)

    def settle(self) -> None:
        """Every entry is applied: groups that were at the end of a partition stand where the last checkpoint saw it.

        Not at each checkpoint: it would cost a look at each group for each second of the journal."""
        for share in self.shares.values():
            for index in share.live:
                share.cursors[index] = max(share.cursors[index], self.seen[index])
            share.live = []

    def _shared(self, entry: e.Shared) -> None:
        self.shares[entry.asked] = ReplayedShare(list(entry.cursors), list(entry.returned))

    def _retained(self, entry: e.RetainedEntry) -> None:
        self._snapshot[entry.topic] = entry

    def _snapshot_begun(self, entry: e.SnapshotBegun) -> None:
        self._snapshot = {}

    def _snapshot_ended(self, entry: e.SnapshotEnded) -> None:
        self.retained, self._snapshot = self._snapshot, {}
        self.retained_from = entry.retained

    # Entries about one session and its shares

    def _subscribed(self, entry: e.Subscribed) -> None:
        session = self.sessions.get(entry.number)
        if session is None:
            return
        session.subscriptions[entry.asked] = ReplayedSubscription(entry, entry.kind, entry.reader)
        if entry.kind == "share":
            self.shares.setdefault(entry.asked, ReplayedShare(list(entry.cursors)))
            return
        session.cursors[entry.reader] = list(entry.cursors)
        if entry.start is not None:
            session.starts[entry.reader] = entry.start

    def _sent(self, entry: e.Sent) -> None:
        session = self.sessions.get(entry.number)
        if session is None:
            return
        lsns = memoryview(entry.lsns).cast("Q")
        if session.window is None:
            session.window = Window(len(lsns))
        session.window.put(entry.first, entry.states, entry.lsns, entry.code.to_bytes(4, "little") * len(lsns))
        if entry.code & RETAINED_CODE:
            return
        reader, partition = reader_of(entry.code), partition_of(entry.code)
        cursors = session.cursors.get(reader)
        if cursors is not None and partition < len(cursors):
            cursors[partition] = max(cursors[partition], lsns[-1] + 1)
            return
        for subscription in session.subscriptions.values():
            share = self.shares.get(subscription.entry.asked)
            if subscription.kind == "share" and subscription.reader == reader and share is not None:
                share.assigned.update((partition, lsn) for lsn in lsns)

    # Another set of partitions

    def remap(self, partitions: tuple[str, ...], fresh: list[int]) -> None:
        """Refer to these partitions instead. fresh: the cursor in each that is new."""
        self.settle()
        old = {name: index for index, name in enumerate(self.layout)}
        runs = dict(zip(self.layout, self.runs, strict=False))
        self.runs = [runs.get(name, (0, 0)) for name in partitions]
        origin = [old.get(name) for name in partitions]
        new_index = {was: new for new, was in enumerate(origin) if was is not None}
        self.layout = partitions

        def moved(vector: list[int]) -> list[int]:
            return [fresh[new] if was is None or was >= len(vector) else vector[was] for new, was in enumerate(origin)]

        for session in self.sessions.values():
            session.remap(moved, new_index)
        for share in self.shares.values():
            share.cursors = moved(share.cursors)
            share.returned = [(new_index[p], a, b) for p, a, b in share.returned if p in new_index]
            share.assigned = {(new_index[p], lsn) for p, lsn in share.assigned if p in new_index}
        for topic, message in list(self.retained.items()):
            if message.partition not in new_index:
                del self.retained[topic]
            else:
                self.retained[topic] = msgspec.structs.replace(message, partition=new_index[message.partition])
        self.retained_from = moved(self.retained_from) if self.retained_from else []
        self.tags_from = moved(self.tags_from) if self.tags_from else []
        self.seen = moved(self.seen) if self.seen else []

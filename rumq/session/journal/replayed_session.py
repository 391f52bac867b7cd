"""One session as the journal's entries leave it, and how each entry about a session changes it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from router.readers.slots import partition_of
from rumq.mqtt.kernels.window import Window
from rumq.session.journal import entries as e
from rumq.session.journal.recorder import REFUSED
from rumq.session.state.session_owner import Owner, key_of

PUBREL = 0x62


@dataclass(slots=True)
class ReplayedSubscription:
    """entry: as it was asked for; kind, reader: of the reader that has it now."""

    entry: e.Subscribed
    kind: str
    reader: int


@dataclass(slots=True)
class ReplayedSession:
    """attached: a client was connected when the journal ended; left_us: when the last one left, µs since 1970

    owner: None where the journal is older than session owners
    cursors: reader number -> the next lsn of each partition; starts: of replays whose start was not found yet
    redelivered_below: as of `entries.Left`
    qos2_open: inbound QoS 2 packet ids that wait for PUBREL; qos2_released: packet id -> PUBRELs since the last `Open`
    qos2_tagged: packet ids of inbound QoS 2 messages that the log has since the last `Open`
    qos2_changed: `qos2_open` differs from the last `Open`
    moving_seconds: as of `entries.Left`
    """

    number: int
    client_id: str
    version: int
    expiry_seconds: int
    owner: Owner | None = None
    attached: bool = True
    left_us: int = 0
    will: e.WillEntry | None = None
    subscriptions: dict[str, ReplayedSubscription] = field(default_factory=dict)
    cursors: dict[int, list[int]] = field(default_factory=dict)
    starts: dict[int, tuple[str, int]] = field(default_factory=dict)
    redelivered_below: list[int] = field(default_factory=list)
    window: Window | None = None
    qos2_open: set[int] = field(default_factory=set)
    qos2_released: dict[int, int] = field(default_factory=dict)
    qos2_tagged: set[int] = field(default_factory=set)
    qos2_changed: bool = False
    moving_seconds: int = 0

    @property
    def key(self) -> str:
        return key_of(self.client_id, self.owner)

    def remap(self, moved: Callable[[list[int]], list[int]], new_index: dict[int, int]) -> None:
        """Refer to another set of partitions: as `ReplayedState.remap`."""
        self.cursors = {number: moved(cursors) for number, cursors in self.cursors.items()}
        self.redelivered_below = moved(self.redelivered_below) if self.redelivered_below else []
        if self.window is not None:
            self.window = remapped_window(self.window, new_index)


def remapped_window(window: Window, new_index: dict[int, int]) -> Window:
    """The same messages, with the partitions' new numbers; those of a partition that is gone are ended."""
    states, lsns, codes = (bytearray(part) for part in window.slots(window.head, window.next))
    numbers = memoryview(codes).cast("I")
    for at, code in enumerate(numbers):
        if (old := partition_of(code)) in new_index:
            numbers[at] = code - old + new_index[old]
        else:
            states[at] = 0
    remapped = Window(window.limit)
    remapped.put(window.head, bytes(states), bytes(lsns), bytes(codes))
    return remapped


def apply_will(session: ReplayedSession, entry: e.WillEntry) -> None:
    session.will = entry if entry.frame else None


def apply_left(session: ReplayedSession, entry: e.Left) -> None:
    session.attached, session.left_us = False, entry.at_us
    session.expiry_seconds = entry.expiry_seconds
    session.cursors.update({number: list(cursors) for number, cursors in entry.cursors.items()})
    session.redelivered_below = list(entry.redelivered_below)
    session.moving_seconds = entry.moving_seconds


def apply_unsubscribed(session: ReplayedSession, entry: e.Unsubscribed) -> None:
    gone = session.subscriptions.pop(entry.asked, None)
    if gone is not None and all(s.reader != gone.reader for s in session.subscriptions.values()):
        session.cursors.pop(gone.reader, None)
        session.starts.pop(gone.reader, None)


def apply_replay_started(session: ReplayedSession, entry: e.ReplayPlaced) -> None:
    session.cursors[entry.reader] = list(entry.cursors)
    session.starts.pop(entry.reader, None)


def apply_merged(session: ReplayedSession, entry: e.ReaderMerged) -> None:
    subscription = session.subscriptions.get(entry.asked)
    if subscription is not None:
        # Both had had everything that they want: what either was sent since its last cursor was written counts.
        late = session.cursors.pop(subscription.reader, None)
        main = session.cursors.get(entry.reader)
        if late is not None and main is not None:
            session.cursors[entry.reader] = [max(pair) for pair in zip_longest(main, late, fillvalue=0)]
        subscription.kind, subscription.reader = "main", entry.reader


def apply_acknowledged(session: ReplayedSession, entry: e.Acknowledged) -> None:
    for word in memoryview(entry.acks).cast("I"):
        head, packet_id = word >> 16, word & 0xFFFF
        if head == PUBREL:
            session.qos2_changed = True
            if packet_id in session.qos2_open:
                session.qos2_open.discard(packet_id)
            else:
                session.qos2_released[packet_id] = session.qos2_released.get(packet_id, 0) + 1
        elif session.window is not None:
            if head == REFUSED:
                session.window.refuse(packet_id)
            else:
                session.window.acknowledge(head, packet_id)


def apply_open(session: ReplayedSession, entry: e.OpenPacketIds) -> None:
    session.qos2_open = set(memoryview(entry.packet_ids).cast("H"))
    session.qos2_released = dict(Counter(memoryview(entry.released).cast("H")))
    session.qos2_changed = bool(entry.released)  # once all is known they are written no more


def apply_window(session: ReplayedSession, entry: e.WindowEntry) -> None:
    session.window = Window(max(1, len(entry.states)))
    session.window.put(entry.first, entry.states, entry.lsns, entry.codes)


APPLY: dict[type, Callable[[ReplayedSession, Any], None]] = {
    e.WillEntry: apply_will, e.Left: apply_left, e.Unsubscribed: apply_unsubscribed,
    e.ReplayPlaced: apply_replay_started, e.ReaderMerged: apply_merged, e.Acknowledged: apply_acknowledged,
    e.OpenPacketIds: apply_open, e.WindowEntry: apply_window,
}  # fmt: skip

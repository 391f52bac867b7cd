"""What the journal's facts add up to: sessions, shares and retained messages as they stood. docs/session-journal.md.

`ReplayedState.take(entries)` in the order of the records; plain data afterwards. Entries about a session that is not
known are passed over: what matters of it comes again in the snapshot that is under way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from router.slots import RETAINED_CODE, partition_of, reader_of
from rumq.mqtt.kernels.window import Window
from rumq.session.journal import entries as f
from rumq.session.journal.recorder import REFUSED, UNKNOWN_TAG, tag_of
from rumq.session.state.session_owner import Owner, key_of

PUBREL = 0x62


@dataclass(slots=True)
class ReplayedSubscription:
    """fact: as it was asked for; reader: number of the reader that has it now."""

    fact: f.Subscribed
    kind: str
    reader: int


@dataclass(slots=True)
class ReplayedSession:
    """attached: a client was there when the journal ended; left_us: since when it was not.

    owner: None where the journal is older than owners are"""

    number: int
    client_id: str
    version: int
    expiry_seconds: int
    owner: Owner | None = None
    attached: bool = True
    left_us: int = 0
    will: f.Will | None = None
    subscriptions: dict[str, ReplayedSubscription] = field(default_factory=dict)
    cursors: dict[int, list[int]] = field(default_factory=dict)
    starts: dict[int, tuple[str, int]] = field(default_factory=dict)
    redelivered_below: list[int] = field(default_factory=list)
    window: Window | None = None
    open: set[int] = field(default_factory=set)
    opened: dict[int, int] = field(default_factory=dict)  # packet id -> releases since `open` was written
    tagged: bool = False  # `open` is not what the last `Open` says

    @property
    def key(self) -> str:
        return key_of(self.client_id, self.owner)


@dataclass(slots=True)
class ReplayedShare:
    """handed: (partition, lsn) that members were sent since `cursors` were written."""

    cursors: list[int]
    returned: list[tuple[int, int, int]] = field(default_factory=list)
    handed: set[tuple[int, int]] = field(default_factory=set)


class ReplayedState:
    """Everything that the journal knows."""

    def __init__(self) -> None:
        self.layout: tuple[str, ...] = ()
        self.sessions: dict[int, ReplayedSession] = {}
        self.shares: dict[str, ReplayedShare] = {}
        self.retained: dict[str, f.Retained] = {}
        self.retained_from: list[int] = []
        self.tags_from: list[int] = []
        self.last_number = 0
        self.changed = False  # made to fit another log than it speaks of
        self._snapshot: dict[str, f.Retained] = {}
        self._apply: dict[type, Callable[[Any], None]] = {
            f.Layout: self._layout, f.Opened: self._opened, f.Ended: self._ended, f.Checkpoint: self._tide,
            f.Shared: self._shared, f.Retained: self._retained, f.SnapshotBegun: self._begun,
            f.SnapshotEnded: self._snapshot_ended,
        }  # fmt: skip
        self._of_session: dict[type, Callable[[ReplayedSession, Any], None]] = {
            f.Will: will, f.Left: left, f.Subscribed: self._subscribed, f.Unsubscribed: unsubscribed,
            f.Placed: placed, f.Merged: merged, f.Sent: self._sent, f.Acknowledged: acknowledged, f.Open: open_tags,
            f.Window: window,
        }  # fmt: skip

    def take(self, facts: list[f.AnyFact]) -> None:
        for fact in facts:
            apply = self._apply.get(type(fact))
            if apply is not None:
                apply(fact)
                continue
            image = self.sessions.get(fact.number)  # type: ignore[union-attr]
            if image is not None:
                self._of_session[type(fact)](image, fact)

    def tag(self, client_ids: dict[str, list[ReplayedSession]], client_id: str, packet_id: int) -> None:
        """The log has an inbound QoS 2 message that no `Open` covers: its packet id waits, unless it was released.

        packet_id: with the tag of its session above it; another session with this client id has nothing to say
        """
        session_tag, packet_id = packet_id >> 16, packet_id & 0xFFFF
        for image in client_ids.get(client_id, ()):
            if session_tag not in (UNKNOWN_TAG, tag_of(image.number)):
                continue
            image.tagged = True
            if image.opened.get(packet_id, 0) > 0:
                image.opened[packet_id] -= 1
            else:
                image.open.add(packet_id)

    # Facts about everything

    def _layout(self, fact: f.Layout) -> None:
        if self.layout and fact.partitions != self.layout:
            self.move(fact.partitions, [0] * len(fact.partitions))
        self.layout = fact.partitions

    def _opened(self, fact: f.Opened) -> None:
        self.last_number = max(self.last_number, fact.number)
        image = self.sessions.get(fact.number)
        if image is None or fact.fresh:
            image = self.sessions[fact.number] = ReplayedSession(
                fact.number, fact.client_id, fact.version, fact.expiry_seconds
            )
        image.version, image.expiry_seconds = fact.version, fact.expiry_seconds
        image.owner = None if fact.mount is None else Owner(fact.user, fact.mount)
        image.attached = True

    def _ended(self, fact: f.Ended) -> None:
        image = self.sessions.pop(fact.number, None)
        if image is None or image.window is None:
            return
        shares = {s.reader: s.fact.asked for s in image.subscriptions.values() if s.kind == "share"}
        for _, state, code, lsn in image.window.waiting():
            asked = shares.get(reader_of(code))
            if state == 1 and asked in self.shares:  # MQTT-4.8.2-5: of QoS 2 nobody else gets it
                self.shares[asked].returned.append((partition_of(code), lsn, lsn + 1))

    def _tide(self, fact: f.Checkpoint) -> None:
        self.tags_from, self.retained_from = fact.next_lsns, fact.retained
        for image in self.sessions.values():
            if not image.attached:
                continue
            behind = fact.behind.get(image.number, {})
            for subscription in image.subscriptions.values():
                if subscription.kind != "share":
                    marks = fact.committed if subscription.kind == "replay" else fact.live
                    number = subscription.reader
                    if number not in image.starts:
                        image.cursors[number] = list(behind.get(number, marks))
        for asked, tide in fact.shares.items():
            self.shares[asked] = ReplayedShare(list(tide.cursors), list(tide.returned))

    def _shared(self, fact: f.Shared) -> None:
        self.shares[fact.asked] = ReplayedShare(list(fact.cursors), list(fact.returned))

    def _retained(self, fact: f.Retained) -> None:
        self._snapshot[fact.topic] = fact

    def _begun(self, fact: f.SnapshotBegun) -> None:
        self._snapshot = {}

    def _snapshot_ended(self, fact: f.SnapshotEnded) -> None:
        self.retained, self._snapshot = self._snapshot, {}
        self.retained_from = fact.retained

    # Facts about one session

    def _subscribed(self, image: ReplayedSession, fact: f.Subscribed) -> None:
        image.subscriptions[fact.asked] = ReplayedSubscription(fact, fact.kind, fact.reader)
        if fact.kind == "share":
            self.shares.setdefault(fact.asked, ReplayedShare(list(fact.cursors)))
            return
        image.cursors[fact.reader] = list(fact.cursors)
        if fact.start is not None:
            image.starts[fact.reader] = fact.start

    def _sent(self, image: ReplayedSession, fact: f.Sent) -> None:
        lsns = memoryview(fact.lsns).cast("Q")
        if image.window is None:
            image.window = Window(len(lsns))
        image.window.put(fact.first, fact.states, fact.lsns, fact.code.to_bytes(4, "little") * len(lsns))
        if fact.code & RETAINED_CODE:
            return
        reader, partition = reader_of(fact.code), partition_of(fact.code)
        cursors = image.cursors.get(reader)
        if cursors is not None and partition < len(cursors):
            cursors[partition] = max(cursors[partition], lsns[-1] + 1)
            return
        for subscription in image.subscriptions.values():
            share = self.shares.get(subscription.fact.asked)
            if subscription.kind == "share" and subscription.reader == reader and share is not None:
                share.handed.update((partition, lsn) for lsn in lsns)

    # Another set of partitions

    def move(self, partitions: tuple[str, ...], fresh: list[int]) -> None:
        """Speak of these partitions instead. fresh: where a reader stands in one that is new."""
        old = {name: index for index, name in enumerate(self.layout)}
        origin = [old.get(name) for name in partitions]
        self.layout = partitions

        def moved(vector: list[int]) -> list[int]:
            return [
                fresh[new] if was is None or was >= len(vector) else vector[was]
                for new, was in enumerate(origin)
            ]

        place = {was: new for new, was in enumerate(origin) if was is not None}
        for image in self.sessions.values():
            image.cursors = {number: moved(cursors) for number, cursors in image.cursors.items()}
            image.redelivered_below = moved(image.redelivered_below) if image.redelivered_below else []
            if image.window is not None:
                image.window = moved_window(image.window, place)
        for share in self.shares.values():
            share.cursors = moved(share.cursors)
            share.returned = [(place[p], a, b) for p, a, b in share.returned if p in place]
            share.handed = {(place[p], lsn) for p, lsn in share.handed if p in place}
        for topic, message in list(self.retained.items()):
            if message.partition not in place:
                del self.retained[topic]
            else:
                self.retained[topic] = f.Retained(
                    place[message.partition], message.lsn, message.base_ts, topic, message.row, message.frame
                )
        self.retained_from = moved(self.retained_from) if self.retained_from else []
        self.tags_from = moved(self.tags_from) if self.tags_from else []


def moved_window(window: Window, place: dict[int, int]) -> Window:
    """The same messages, with the partitions' new numbers; those of a partition that is gone are ended."""
    states, lsns, codes = (bytearray(part) for part in window.slots(window.head, window.next))
    numbers = memoryview(codes).cast("I")
    for at, code in enumerate(numbers):
        if (old := partition_of(code)) in place:
            numbers[at] = code - old + place[old]
        else:
            states[at] = 0
    again = Window(window.limit)
    again.put(window.head, bytes(states), bytes(lsns), bytes(codes))
    return again


def will(image: ReplayedSession, fact: f.Will) -> None:
    image.will = fact if fact.frame else None


def left(image: ReplayedSession, fact: f.Left) -> None:
    image.attached, image.left_us = False, fact.at_us
    image.expiry_seconds = fact.expiry_seconds
    image.cursors.update({number: list(cursors) for number, cursors in fact.places.items()})
    image.redelivered_below = list(fact.redelivered_below)


def unsubscribed(image: ReplayedSession, fact: f.Unsubscribed) -> None:
    gone = image.subscriptions.pop(fact.asked, None)
    if gone is not None and all(s.reader != gone.reader for s in image.subscriptions.values()):
        image.cursors.pop(gone.reader, None)
        image.starts.pop(gone.reader, None)


def placed(image: ReplayedSession, fact: f.Placed) -> None:
    image.cursors[fact.reader] = list(fact.cursors)
    image.starts.pop(fact.reader, None)


def merged(image: ReplayedSession, fact: f.Merged) -> None:
    subscription = image.subscriptions.get(fact.asked)
    if subscription is not None:
        image.cursors.pop(subscription.reader, None)
        subscription.kind, subscription.reader = "main", fact.reader


def acknowledged(image: ReplayedSession, fact: f.Acknowledged) -> None:
    for word in memoryview(fact.acks).cast("I"):
        head, packet_id = word >> 16, word & 0xFFFF
        if head == PUBREL:
            image.tagged = True
            if packet_id in image.open:
                image.open.discard(packet_id)
            else:
                image.opened[packet_id] = image.opened.get(packet_id, 0) + 1
        elif image.window is not None:
            if head == REFUSED:
                image.window.refuse(packet_id)
            else:
                image.window.acknowledge(head, packet_id)


def open_tags(image: ReplayedSession, fact: f.Open) -> None:
    image.open = set(memoryview(fact.packet_ids).cast("H"))
    image.opened = {}
    image.tagged = False


def window(image: ReplayedSession, fact: f.Window) -> None:
    image.window = Window(max(1, len(fact.states)))
    image.window.put(fact.first, fact.states, fact.lsns, fact.codes)

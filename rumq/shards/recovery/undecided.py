"""Inbound QoS 2 messages of which it is not known whether they are stored: their partitions are led by shards that were
missing when this one began. MQTT 5.0, 4.3.3.

A client that goes on with its session sends a message again (PUBLISH with DUP) or ends its exchange (PUBREL). Where the
answer may be in a missing shard's log, the packet waits, and those behind it with it; all other packets are taken. Once
a shard has said which messages it has, its packet ids are as if that had been known at the start.

    PUBLISH, QoS 2  to a partition of a missing shard          waits for that shard
                    to another one, without DUP                is new
                    ..., with DUP, nothing stored by its id    is new
                    ..., and a message stored by it, released  waits: was it that one, or one in a missing shard?
    PUBREL          of an id that is open                      ends the exchange
                    of another one                             waits for all missing shards
    anything else                                              is taken"""
# compiled: warm

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import Protocol

from rumq.loop.ports import EventSink, Timers
from rumq.mqtt.kernels.wire_state import Wire
from rumq.mqtt.reasons import Reason
from rumq.session.journal.recorder import UNKNOWN_TAG, JournalRecorder, tag_of
from rumq.session.journal.replayed_session import ReplayedSession
from rumq.session.state.session import Session

WAITING_SECONDS = 10.0  # that a client waits for the answer of a missing shard, before it is disconnected


class WaitingConnection(Protocol):
    """A connection of which a packet waits: `rumq.session.protocol.connected`."""

    @property
    def session(self) -> Session: ...
    @property
    def wire(self) -> Wire: ...
    def pause(self) -> None: ...
    def resume(self, call: Callable[[], None] | None = None) -> None: ...
    def dismiss(self, reason: Reason, why: str | None = None, reference: str = "") -> None: ...


class Undecided:
    """missing: shards that have not said what they have, with their partitions"""

    def __init__(self, recorder: JournalRecorder, timers: Timers, events: EventSink) -> None:
        self._recorder, self._timers, self._events = recorder, timers, events
        self.missing: dict[int, frozenset[int]] = {}
        self._sessions: dict[int, ReplayedSession] = {}
        self._by_client: dict[str, list[ReplayedSession]] = {}
        self._waiting: dict[WaitingConnection, list[Callable[[], None]]] = {}  # and what takes the PUBREL that waits
        self._dismissed = 0  # clients disconnected since the last event

    def begin(self, missing: Mapping[int, Collection[int]], sessions: Mapping[int, ReplayedSession]) -> None:
        """Sessions are restored, and clients may come. missing: shard -> partitions

        sessions: by number, with the tags of the shards that have answered"""
        self.missing = {shard: frozenset(partitions) for shard, partitions in missing.items()}
        self._sessions = dict(sessions)
        for session in sessions.values():
            self._by_client.setdefault(session.client_id, []).append(session)
        self._note_released()

    def concerns(self, session: Session) -> bool:
        """Whether messages of a session may be in a missing shard's log."""
        return bool(self.missing) and session.number in self._sessions

    # Packets

    def takes_publish(self, link: WaitingConnection, *, is_again: bool) -> bool:
        """Whether the PUBLISH at which the kernel stopped is taken; else it waits. is_again: it has DUP"""
        wire, replayed = link.wire, self._sessions.get(link.session.number)
        if replayed is None or not self.missing:
            wire.undecided = False
            return True
        is_there = all(wire.partition not in partitions for partitions in self.missing.values())
        if is_there and not (is_again and wire.packet_id in replayed.qos2_tagged):
            wire.passed = wire.packet_id
            return True
        self._wait(link, [])
        return False

    def wait_for_all(self, link: WaitingConnection, call: Callable[[], None]) -> None:
        """Have a PUBREL of an id that is not open wait, and `call` take it."""
        self._wait(link, [call])

    def _wait(self, link: WaitingConnection, calls: list[Callable[[], None]]) -> None:
        link.pause()
        self._waiting[link] = calls
        self._timers.later(WAITING_SECONDS, partial(self._give_up, link, calls))

    def _give_up(self, link: WaitingConnection, calls: list[Callable[[], None]]) -> None:
        if self._waiting.get(link) is calls:
            del self._waiting[link]
            shards = ", ".join(map(str, sorted(self.missing)))
            self._dismissed += 1
            if self._dismissed == 1:
                self._timers.later(1.0, self._tell_dismissed)
            link.dismiss(
                Reason.SERVER_BUSY,
                f"shard {shards} is away and may have the QoS 2 message that was sent again",
            )

    def _tell_dismissed(self) -> None:
        self._events.tell("shard.waits_ended", shards=sorted(self.missing), clients=self._dismissed)
        self._dismissed = 0

    # Answers

    def answered(self, shard: int, tags: Iterable[tuple[str, int]]) -> None:
        """A missing shard has said which messages it has: (client id, session tag << 16 | packet id) of each.

        What was published since the start is not among them: it was not handed over yet."""
        recorder = self._recorder
        changed = set(recorder.qos2_released)
        for client_id, tag in tags:
            session_tag, packet_id = tag >> 16, tag & 0xFFFF
            for replayed in self._by_client.get(client_id, ()):
                if session_tag not in (UNKNOWN_TAG, tag_of(replayed.number)):
                    continue
                changed.add(replayed.number)
                replayed.qos2_tagged.add(packet_id)
                if replayed.qos2_released.get(packet_id, 0) > 0:
                    replayed.qos2_released[packet_id] -= 1
                elif (session := recorder.sessions.get(replayed.number)) is not None:
                    open_packet_id(session, packet_id)
        self.missing.pop(shard, None)
        if not self.missing:
            self._end()
        self._note_released()
        # With the checkpoint that says how far the log was searched.
        for number in changed:
            if (session := recorder.sessions.get(number)) is not None:
                recorder.qos2_changed[number] = session
        for link, calls in list(self._waiting.items()):
            if not calls or not self.missing:
                del self._waiting[link]
                link.resume(calls[0] if calls else None)

    def _end(self) -> None:
        for number in self._sessions:
            session = self._recorder.sessions.get(number)
            if session is not None and session.link is not None:
                session.link.wire.undecided = False
        self._sessions, self._by_client = {}, {}

    def _note_released(self) -> None:
        """For the journal: a later run may have to ask the missing shards again."""
        self._recorder.qos2_released = {
            number: packed
            for number, session in self._sessions.items()
            if (packed := packed_releases(session.qos2_released))
        }


def packed_releases(released: Mapping[int, int]) -> bytes:
    """As of `entries.Open.released`."""
    return b"".join(packet_id.to_bytes(2, "little") * times for packet_id, times in released.items())


def open_packet_id(session: Session, packet_id: int) -> None:
    """An inbound QoS 2 message of a session waits for PUBREL."""
    link = session.link
    bits = link.wire.qos2_open if link is not None else session.qos2_open
    if bits is None:
        bits = bytearray(8192)
        if link is not None:
            link.wire.qos2_open = bits
        else:
            session.qos2_open = bits
    is_fresh = not bits[packet_id >> 3] >> (packet_id & 7) & 1
    bits[packet_id >> 3] |= 1 << (packet_id & 7)
    if link is not None and is_fresh:
        link.wire.unacknowledged += 1

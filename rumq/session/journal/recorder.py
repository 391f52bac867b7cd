"""Facts about durable sessions, gathered during a turn, in the order in which they became true.

A session that outlives its connection must outlive the broker too. What a client was told (CONNACK, SUBACK, PUBREL,
PUBCOMP) waits until the facts behind it are written; everything else is written soon after (docs/session-journal.md).

Knows no file and no partition's content; whoever owns it takes the facts and keeps them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rumq.mqtt.encode import encode
from rumq.mqtt.packets import Publish
from rumq.mqtt.packets import Will as WillMessage
from rumq.mqtt.properties import Properties
from rumq.session.journal import entries as f
from rumq.session.journal.reader_positions import cursors_of, redelivered_below_of, subscribed

if TYPE_CHECKING:
    from rumq.session.state.session import Session

REFUSED = 0  # instead of a packet's first byte, in `Acknowledged`
UNKNOWN_TAG, NO_SESSION_TAG = 0, 65_535


def tag_of(number: int) -> int:
    """What says in the log of which session an inbound QoS 2 message was. docs/log-format.md, "Aux"."""
    return number % 65_534 + 1 if number else NO_SESSION_TAG


class JournalRecorder:
    """What happened to durable sessions since the facts were taken last."""

    def __init__(self) -> None:
        self.facts: list[f.AnyFact] = []
        self.sessions: dict[int, Session] = {}  # every session that is written down, by its number
        self.last_number = 0
        self.tagged: dict[
            int, Session
        ] = {}  # whose inbound QoS 2 packet ids have changed since the last tide
        self._asked: dict[tuple[int, str], Session] = {}
        self._left: dict[int, Session] = {}

    # A session's life

    def connected(self, session: Session) -> None:
        """A client has its session; it is durable if it outlives the connection, or leaves a will."""
        session.durable = session.expiry_seconds > 0
        if not session.number:
            if not session.durable and session.will is None:
                return
            self.last_number += 1
            session.number = self.last_number
            self.sessions[session.number] = session
            if session.qos2_open is not None:  # what it took so far is not known by this number
                self.tagged[session.number] = session
        self._left.pop(session.number, None)
        self.facts.append(opened(session, fresh=False))
        self.will(session)

    def will(self, session: Session) -> None:
        """The session's will is another, or none."""
        if session.number:
            self.facts.append(will_fact(session))

    def left(self, session: Session) -> None:
        """The client is gone, the session stays. Where its readers stand is looked up when the facts are taken."""
        if session.number:
            self._left[session.number] = session

    def ended(self, session: Session) -> None:
        if session.number:
            self._left.pop(session.number, None)
            self.tagged.pop(session.number, None)
            self.sessions.pop(session.number, None)
            self.facts.append(f.Ended(session.number))
            session.number = 0

    # Subscriptions

    def subscribed(self, session: Session, asked: str) -> None:
        """The router is being told of a subscription; where it stands is looked up when the facts are taken."""
        if session.durable:
            self._asked[session.number, asked] = session

    def unsubscribed(self, session: Session, asked: str) -> None:
        if session.durable:
            self._asked.pop((session.number, asked), None)
            self.facts.append(f.Unsubscribed(session.number, asked))

    def merged(self, session: Session, asked: str, reader: int) -> None:
        if session.durable:
            self.facts.append(f.Merged(session.number, asked, reader))

    def placed(self, session: Session, reader: int, cursors: list[int]) -> None:
        if session.durable:
            self.facts.append(f.Placed(session.number, reader, list(cursors)))

    def shared(
        self, asked: str, cursors: list[int], returned: list[tuple[int, int, int]] | None = None
    ) -> None:
        """A shared subscription is also another shard's from now on."""
        self.facts.append(f.Shared(asked, list(cursors), returned or []))

    # Messages

    def sent(self, session: Session, code: int, first: int, states: bytes, lsns: bytes) -> None:
        self.facts.append(f.Sent(session.number, code, first, states, lsns))

    def acknowledged(self, session: Session, acks: bytes) -> None:
        self.facts.append(f.Acknowledged(session.number, acks))

    def acknowledged_one(self, session: Session, head: int, packet_id: int) -> None:
        self.acknowledged(session, (head << 16 | packet_id).to_bytes(4, "little"))

    # Taking

    def take(self, marks: list[tuple[int, int]], now_us: int) -> list[f.AnyFact]:
        """Everything since the last time, for one record. marks: (live, committed) of each partition."""
        if self._asked:
            for (number, asked), session in self._asked.items():
                fact = subscribed(session, asked, marks)
                if fact is not None and session.number == number:
                    self.facts.append(fact)
            self._asked.clear()
        if self._left:
            for session in self._left.values():
                self.facts.append(left(session, marks, now_us))
            self._left.clear()
        taken, self.facts = self.facts, []
        return taken

    @property
    def waits(self) -> bool:
        return bool(self.facts or self._asked or self._left)


def opened(session: Session, *, fresh: bool) -> f.Opened:
    mount, user = (None, None) if session.owner is None else (session.owner.mount, session.owner.user)
    return f.Opened(
        session.number, session.client_id, session.version, session.expiry_seconds, fresh, mount, user
    )


def left(session: Session, marks: list[tuple[int, int]], now_us: int) -> f.Left:
    places = {r.number: cursors_of(r, marks) for r in session.subscriber.readers()}
    return f.Left(
        session.number, now_us, session.expiry_seconds, places, redelivered_below_of(session, marks)
    )


def will_fact(session: Session) -> f.Will:
    will = session.will
    if will is None:
        return f.Will(session.number, 0, b"")
    delay = will.properties.get("will_delay_interval", 0)
    return f.Will(session.number, delay, encode(as_publish(will), 5), session.author)


def as_publish(will: WillMessage) -> Publish:
    """The message that a will is, once it is due. MQTT 5.0, 3.1.3.2."""
    properties: Properties = {**will.properties}
    properties.pop("will_delay_interval", None)
    return Publish(
        will.topic, will.payload, will.qos, will.retain, False, 1 if will.qos else None, properties
    )

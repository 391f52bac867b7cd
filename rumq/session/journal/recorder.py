"""Journal entries of one turn about durable sessions, in the order in which they became true.

A session that outlives its connection must outlive the broker too. CONNACK, SUBACK, PUBREL and PUBCOMP wait until the
entries behind them are written; all other entries are written soon after. docs/reference/session-journal.md.

`rumq.shards.recovery.journal_writer` drains the entries and writes them."""
# compiled: warm

from __future__ import annotations

from rumq.mqtt.encode import encode
from rumq.session.journal import entries as e
from rumq.session.journal.reader_positions import (
    Watermarks,
    cursors_of,
    redelivered_below_of,
    subscribed_entry,
)
from rumq.session.state.session import Session
from rumq.session.state.wills import message_of

REFUSED = 0  # instead of a packet's first byte, in `Acknowledged`
UNKNOWN_TAG, NO_SESSION_TAG = 0, 65_535


def tag_of(number: int) -> int:
    """The session tag of inbound QoS 2 messages in the log. docs/reference/log-format.md, "Aux"."""
    return number % 65_534 + 1 if number else NO_SESSION_TAG


class JournalRecorder:
    """entries: since `drain` was called last; sessions: all durable ones, by number

    qos2_changed: those whose inbound QoS 2 packet ids have changed since the last checkpoint
    qos2_released: by number, `entries.Open.released`; of none once every shard has said which messages it has"""

    def __init__(self) -> None:
        self.entries: list[e.JournalEntry] = []
        self.sessions: dict[int, Session] = {}
        self.last_number = 0
        self.qos2_changed: dict[int, Session] = {}
        self.qos2_released: dict[int, bytes] = {}
        self._subscribed: dict[tuple[int, str], Session] = {}
        self._left: dict[int, Session] = {}

    # The life of a session

    def connected(self, session: Session) -> None:
        """A client has got its session; it is durable if it outlives the connection, or has a will."""
        session.durable = session.expiry_seconds > 0
        if not session.number:
            if not session.durable and session.will is None:
                return
            self.last_number += 1
            session.number = self.last_number
            self.sessions[session.number] = session
            if session.qos2_open is not None:  # the journal has none of its packet ids under this number
                self.qos2_changed[session.number] = session
        self._left.pop(session.number, None)
        self.entries.append(opened_entry(session, fresh=False))
        self.will(session)

    def will(self, session: Session) -> None:
        """The session has another will, or none."""
        if session.number:
            self.entries.append(will_entry(session))

    def left(self, session: Session) -> None:
        """The client has disconnected, the session stays. `drain` adds the positions of its readers."""
        if session.number:
            self._left[session.number] = session

    def ended(self, session: Session) -> None:
        if session.number:
            self._left.pop(session.number, None)
            self.qos2_changed.pop(session.number, None)
            self.sessions.pop(session.number, None)
            self.entries.append(e.SessionEnded(session.number))
            session.number = 0

    def moving(self, session: Session) -> None:
        """The client's connection goes to the next leader: its session is in the journal, whatever it was before."""
        if not session.number:
            self.last_number += 1
            session.number = self.last_number
            self.sessions[session.number] = session
        session.durable = True

    def stays(self, session: Session) -> None:
        """The connection goes on here, from another leader or because nothing came of the move."""
        session.durable = session.expiry_seconds > 0
        if not session.number:
            return
        self._left.pop(session.number, None)
        self.entries.append(opened_entry(session, fresh=not session.durable))
        if session.durable or session.will is not None:
            self.will(session)
        else:
            self.ended(session)

    # Subscriptions

    def subscribed(self, session: Session, asked: str) -> None:
        """The router gets a subscription in this turn. `drain` adds the position of its reader."""
        if session.durable:
            self._subscribed[session.number, asked] = session

    def unsubscribed(self, session: Session, asked: str) -> None:
        if session.durable:
            self._subscribed.pop((session.number, asked), None)
            self.entries.append(e.Unsubscribed(session.number, asked))

    def merged(self, session: Session, asked: str, reader: int) -> None:
        if session.durable:
            self.entries.append(e.ReaderMerged(session.number, asked, reader))

    def replay_started(self, session: Session, reader: int, cursors: list[int]) -> None:
        if session.durable:
            self.entries.append(e.ReplayPlaced(session.number, reader, list(cursors)))

    def shared(self, asked: str, cursors: list[int], returned: list[tuple[int, int, int]] | None = None) -> None:
        """A shared subscription has got a member in another shard."""
        self.entries.append(e.Shared(asked, list(cursors), returned or []))

    # Messages

    def sent(self, session: Session, code: int, first: int, states: bytes, lsns: bytes) -> None:
        self.entries.append(e.Sent(session.number, code, first, states, lsns))

    def acknowledged(self, session: Session, acks: bytes) -> None:
        self.entries.append(e.Acknowledged(session.number, acks))

    def acknowledged_one(self, session: Session, head: int, packet_id: int) -> None:
        self.acknowledged(session, (head << 16 | packet_id).to_bytes(4, "little"))

    # For the writer

    def has_entries(self) -> bool:
        """Whether `drain` would give any."""
        return bool(self.entries or self._subscribed or self._left)

    def drain(self, watermarks: Watermarks, now_us: int) -> list[e.JournalEntry]:
        """Everything since the last call, for one record."""
        if self._subscribed:
            for (number, asked), session in self._subscribed.items():
                entry = subscribed_entry(session, asked, watermarks)
                if entry is not None and session.number == number:
                    self.entries.append(entry)
            self._subscribed.clear()
        if self._left:
            for session in self._left.values():
                self.entries.append(left_entry(session, watermarks, now_us))
            self._left.clear()
        drained, self.entries = self.entries, []
        return drained


def opened_entry(session: Session, *, fresh: bool) -> e.SessionOpened:
    mount, user = (None, None) if session.owner is None else (session.owner.mount, session.owner.user)
    return e.SessionOpened(
        session.number, session.client_id, session.version, session.expiry_seconds, fresh, mount, user
    )


def left_entry(session: Session, watermarks: Watermarks, now_us: int, *, moving_seconds: int = 0) -> e.Left:
    cursors = {r.number: cursors_of(r, watermarks) for r in session.subscriber.readers()}
    return e.Left(
        session.number, now_us, session.expiry_seconds, cursors, redelivered_below_of(session, watermarks),
        moving_seconds,
    )  # fmt: skip


def will_entry(session: Session) -> e.WillEntry:
    will = session.will
    if will is None:
        return e.WillEntry(session.number, 0, b"")
    delay = will.properties.get("will_delay_interval", 0)
    return e.WillEntry(session.number, delay, encode(message_of(will), 5), session.author)

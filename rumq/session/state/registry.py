"""The sessions of a shard by owner and client id: resumption, expiry and delayed wills.

MQTT 5.0, 3.1.2.4, 3.1.2.5, 3.1.2.11.2, 3.1.3.2.2 and 4.1. Time is an argument, monotonic seconds."""
# compiled: warm

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Protocol

from router.commands import CommandQueue, Detach, End
from router.readers.slots import RETAINED_CODE, partition_of, reader_of
from rumq.mqtt.packets import Will
from rumq.session.flow_control.limits import EXPIRES_NEVER
from rumq.session.state.deadlines import Deadlines
from rumq.session.state.filter_totals import FilterTotals
from rumq.session.state.persistent_sessions import UNKNOWN, PersistentSessions
from rumq.session.state.session import Session
from rumq.session.state.session_owner import ANYBODY, Owner, key_of
from rumq.session.state.subscribed_filters import NO_FILTERS


class SessionJournal(Protocol):
    """`rumq.session.journal.recorder.JournalRecorder`."""

    def ended(self, session: Session) -> None: ...

    def left(self, session: Session) -> None: ...

    def will(self, session: Session) -> None: ...


PublishWill = Callable[[Session, Will, Session | None], None]


class Registry:
    """sessions: by `session_owner.key_of`; persistent: those that outlive their connections

    filter_totals: of their filters; expired: number so far"""

    def __init__(
        self, commands: CommandQueue, publish_will: PublishWill, journal: SessionJournal,
        release_publishers: Callable[[Sequence[int]], None],
    ) -> None:  # fmt: skip
        """publish_will: called when one is due, with (session that left it, will, session that its client has now)

        release_publishers: called with the numbers of a session that ends, by partition (0: none)"""
        self._release_publishers = release_publishers
        self._journal = journal
        self.sessions: dict[str, Session] = {}
        self._commands = commands
        self._publish_will = publish_will
        self.deadlines = Deadlines()
        self.persistent = PersistentSessions()
        self.filter_totals = FilterTotals()
        self.expired = 0

    def __len__(self) -> int:
        return len(self.sessions)

    def find(self, client_id: str, owner: Owner) -> Session | None:
        """The owner's session with this client id.

        A session without an owner is assigned to this one, if all its filters are under the owner's mount point."""
        session = self.sessions.get(key_of(client_id, owner))
        if session is not None:
            return session
        unowned = self.sessions.get(key_of(client_id, None))
        if unowned is None or not all(each.startswith(owner.mount) for each in unowned.subscriber.plain_filters()):
            return None
        del self.sessions[unowned.key]
        unowned.assign_owner(owner)
        self.sessions[unowned.key] = unowned
        return unowned

    def open(
        self, client_id: str, shape: Hashable, *, personal: bool, clean_start: bool, owner: Owner = ANYBODY
    ) -> tuple[Session, bool]:
        """The session for a client that connects, and Session Present. The caller has closed its old connection."""
        old = self.find(client_id, owner)
        if old is not None and not clean_start:
            self._resume(old, shape, personal)
            return old, True
        if old is not None:
            # Clean Start ends the old session, and with it the delay of its will (3.1.3.2.2).
            self.end(old)
        session = Session(client_id, shape, personal=personal, owner=owner)
        self.sessions[session.key] = session
        return session, False

    def _resume(self, session: Session, shape: Hashable, personal: bool) -> None:
        self.deadlines.cancel(session)
        session.expires_at = None
        session.will = None  # its delay has not passed
        session.will_at = None
        session.is_moving = False
        session.reshape(shape, personal)

    def maybe_rejoin(
        self, client_id: str, owner: Owner | None, number: int, shape: Hashable, personal: bool
    ) -> Session | None:
        """The session of a connection that comes from the leader before; None if it has ended or is another's.

        number: in the journal"""
        session = self.sessions.get(key_of(client_id, owner))
        if session is None or not session.is_moving or session.number != number or session.link is not None:
            return None
        self.deadlines.cancel(session)
        session.expires_at = session.will_at = None
        session.is_moving = False
        session.reshape(shape, personal)
        return session

    def leave(self, session: Session, *, with_will: bool, now: float) -> None:
        """The connection of a session has ended. with_will: without a DISCONNECT that deletes the will"""
        session.link = None
        if not with_will:
            session.will = None
        will = session.will
        if session.expiry_seconds == 0:
            self.end(session)
            return
        if session.has_subscriber:
            self._commands.put(Detach(session.subscriber))
        self._journal.left(session)
        if session.expiry_seconds != EXPIRES_NEVER:
            session.expires_at = now + session.expiry_seconds
        if will is not None:
            delay = will.properties.get("will_delay_interval", 0)
            if delay == 0:
                session.will = None
                self._publish_will(session, will, self.sessions.get(session.key))
            else:
                session.will_at = now + delay
        self._set_deadline(session)
        if session.will is None:
            self._journal.will(session)

    def persist(self, session: Session, holder: str) -> None:
        """The session outlives its connection: count it for this holder."""
        self.persistent.add(holder, session.holder)
        session.holder = holder

    def count_filters(self, session: Session, holder: str) -> None:
        """Count the filters that a session has, if any, for this holder."""
        if session.asked is not NO_FILTERS:
            session.asked.count_for(holder, self.filter_totals)

    def restore(self, session: Session, *, expires_in: float, will_in: float | None, now: float) -> None:
        """Register a session of an earlier run; no client is connected with it."""
        self.sessions[session.key] = session
        self.persist(session, UNKNOWN)
        self.count_filters(session, UNKNOWN)
        if expires_in != EXPIRES_NEVER:
            session.expires_at = now + expires_in
        if will_in is not None:
            session.will_at = now + will_in
        self._set_deadline(session)

    def end(self, session: Session) -> None:
        """Delete a session; a delayed will is due now."""
        if session.ended:
            return
        session.ended = True
        self.deadlines.cancel(session)
        if session.holder is not None:
            self.persistent.remove(session.holder)
        if session.asked is not NO_FILTERS:
            session.asked.count_for("", None)
        if self.sessions.get(session.key) is session:
            del self.sessions[session.key]
        if session.publishers is not None:
            self._release_publishers(session.publishers)
            session.publishers = None
        will, session.will = session.will, None
        unacknowledged = []
        if session.window is not None:
            for _, state, code, lsn in session.window.waiting():
                if state == 1 and not code & RETAINED_CODE:  # MQTT-4.8.2-5: QoS 2 goes to no other member
                    unacknowledged.append((reader_of(code), partition_of(code), lsn))
        if session.has_subscriber:
            self._commands.put(End(session.subscriber, unacknowledged))
        self._journal.ended(session)
        if will is not None:
            self._publish_will(session, will, self.sessions.get(session.key))

    def _set_deadline(self, session: Session) -> None:
        """The earlier of will and expiry."""
        due = [at for at in (session.expires_at, session.will_at) if at is not None]
        if due:
            self.deadlines.put(session, min(due))

    def expire(self, now: float) -> list[Session]:
        """End the sessions that have expired and publish the wills that are due; returns the sessions that ended."""
        ended = []
        while (session := self.deadlines.maybe_due(now)) is not None:
            if session.ended or session.link is not None:
                continue
            if session.will_at is not None and session.will_at <= now:
                will, session.will, session.will_at = session.will, None, None
                if will is not None:
                    self._publish_will(session, will, self.sessions.get(session.key))
                    self._journal.will(session)
            if session.expires_at is not None and session.expires_at <= now:
                self.end(session)
                self.expired += 1
                ended.append(session)
            else:
                self._set_deadline(session)
        return ended

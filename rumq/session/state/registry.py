"""Every session of this broker by owner and client id: found again, taken over, expired; and wills that wait.

MQTT 5.0, 3.1.2.4, 3.1.2.5, 3.1.2.11.2, 3.1.3.2.2 and 4.1. Time is an argument, monotonic seconds. Knows no socket."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from router.commands import CommandQueue, Detach, End
from router.slots import RETAINED_CODE, partition_of, reader_of
from rumq.mqtt.packets import Will
from rumq.session.flow_control.limits import EXPIRES_NEVER
from rumq.session.journal.recorder import JournalRecorder
from rumq.session.state.deadlines import Deadlines
from rumq.session.state.persistent_sessions import UNKNOWN, PersistentSessions
from rumq.session.state.session import Session
from rumq.session.state.session_owner import ANYBODY, Owner, key_of


class Registry:
    """Sessions by `session_owner.key_of`. `publish_will` is called with (session, will) when one is due."""

    def __init__(
        self, commands: CommandQueue, publish_will: Callable[[Session, Will], None], journal: JournalRecorder
    ) -> None:
        self.journal = journal
        self.sessions: dict[str, Session] = {}
        self._commands = commands
        self._publish_will = publish_will
        self._deadlines: Deadlines[Session] = Deadlines()
        self.lasting = PersistentSessions()
        self.expired = 0  # sessions, so far

    def __len__(self) -> int:
        return len(self.sessions)

    def find(self, client_id: str, owner: Owner) -> Session | None:
        """The owner's session with this client id; one that nobody knows the owner of is the owner's from now on,
        if all that it asks for is under the owner's mount point."""
        session = self.sessions.get(key_of(client_id, owner))
        if session is not None:
            return session
        unowned = self.sessions.get(key_of(client_id, None))
        if unowned is None or not all(
            each.startswith(owner.mount) for each in unowned.subscriber.plain_filters()
        ):
            return None
        del self.sessions[unowned.key]
        unowned.belong_to(owner)
        self.sessions[unowned.key] = unowned
        return unowned

    def open(
        self, client_id: str, shape: Hashable, *, personal: bool, clean_start: bool, owner: Owner = ANYBODY
    ) -> tuple[Session, bool]:
        """The session for a client that connects, and whether it was there before.

        Whoever calls has ended the connection that the session had."""
        old = self.find(client_id, owner)
        if old is not None and not clean_start:
            self._resume(old, shape, personal)
            return old, True
        if old is not None:
            # A new session begins, so the old one ends, and with it the wait of its will (3.1.3.2.2).
            self.end(old)
        session = Session(client_id, shape, personal=personal, owner=owner)
        self.sessions[session.key] = session
        return session, False

    def _resume(self, session: Session, shape: Hashable, personal: bool) -> None:
        self._deadlines.cancel(session)
        session.expires_at = None
        session.will = None  # it was to be sent only if the client did not come back in time
        session.will_at = None
        subscriber = session.subscriber
        if (subscriber.shape, subscriber.personal) != (shape, personal):
            subscriber.shape, subscriber.personal = shape, personal
            subscriber.reshape = True

    def leave(self, session: Session, *, with_will: bool, now: float) -> None:
        """The connection of a session has ended. with_will: it ended so that the will is due."""
        session.link = None
        if not with_will:
            session.will = None
        will = session.will
        if session.expiry_seconds == 0:
            self.end(session)
            return
        self._commands.put(Detach(session.subscriber))
        self.journal.left(session)
        if session.expiry_seconds != EXPIRES_NEVER:
            session.expires_at = now + session.expiry_seconds
        if will is not None:
            delay = will.properties.get("will_delay_interval", 0)
            if delay == 0:
                session.will = None
                self._publish_will(session, will)
            else:
                session.will_at = now + delay
        self._wait(session)
        if session.will is None:
            self.journal.will(session)

    def lasts(self, session: Session, holder: str) -> None:
        """The session outlives its connection, and counts for this holder from now on."""
        self.lasting.take(session.holder, holder)
        session.holder = holder

    def restore(self, session: Session, *, expires_in: float, will_in: float | None, now: float) -> None:
        """Take up a session that an earlier run of the broker had; nobody is connected with it."""
        self.sessions[session.key] = session
        self.lasts(session, UNKNOWN)
        if expires_in != EXPIRES_NEVER:
            session.expires_at = now + expires_in
        if will_in is not None:
            session.will_at = now + will_in
        self._wait(session)

    def end(self, session: Session) -> None:
        """Forget a session; its will, if it still waits, is due now."""
        if session.ended:
            return
        session.ended = True
        self._deadlines.cancel(session)
        if session.holder is not None:
            self.lasting.give_back(session.holder)
        if self.sessions.get(session.key) is session:
            del self.sessions[session.key]
        will, session.will = session.will, None
        unacknowledged = []
        if session.window is not None:
            for _, state, code, lsn in session.window.waiting():
                if state == 1 and not code & RETAINED_CODE:  # QoS 2 goes to nobody else: MQTT-4.8.2-5
                    unacknowledged.append((reader_of(code), partition_of(code), lsn))
        self._commands.put(End(session.subscriber, unacknowledged))
        self.journal.ended(session)
        if will is not None:
            self._publish_will(session, will)

    def _wait(self, session: Session) -> None:
        """Look at a session when its will is due or it expires, whichever is sooner."""
        due = [at for at in (session.expires_at, session.will_at) if at is not None]
        if due:
            self._deadlines.put(session, min(due))

    def next_deadline(self) -> float | None:
        return self._deadlines.first()

    def expire(self, now: float) -> list[Session]:
        """End sessions and send wills whose time has come; returns the sessions that ended."""
        ended = []
        while (session := self._deadlines.maybe_due(now)) is not None:
            if session.ended or session.link is not None:
                continue
            if session.will_at is not None and session.will_at <= now:
                will, session.will, session.will_at = session.will, None, None
                if will is not None:
                    self._publish_will(session, will)
                    self.journal.will(session)
            if session.expires_at is not None and session.expires_at <= now:
                self.end(session)
                self.expired += 1
                ended.append(session)
            else:
                self._wait(session)
        return ended

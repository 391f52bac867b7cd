"""Messages of an outbox to a broker, each once: QoS 2, with packet ids that follow from a message's place.

MQTT 5.0, 4.3.3: up to PUBREL a broker takes another PUBLISH with a packet id of its session for the same message. So a
message that is sent again with its own id, by whatever process, is stored once. PUBREL is sent when the outbox's file
says that the message is stored: then it is never sent again. docs/decisions/0061-the-clients-outbox.md. No I/O."""

from __future__ import annotations

from dataclasses import dataclass

from rumq.mqtt.packets import Packet, Puback, Pubcomp, Pubrec, Pubrel
from rumq.mqtt.reasons import Reason

FIRST_ID, IDS = 32_768, 32_768  # packet ids of outboxes: those below are for SUBSCRIBE and its like
WINDOW_MAX = IDS // 2  # messages on their way: an id comes again only when all that may hold it are released
WINDOW_BEFORE_5 = 20  # MQTT 3.1.1 has no receive maximum, and mosquitto takes 20 at a time

# A message that is refused so may be taken later; any other refusal stays one.
TEMPORARY_REFUSALS = frozenset({Reason.QUOTA_EXCEEDED, Reason.UNSPECIFIED_ERROR, Reason.SERVER_BUSY})


def packet_id_of(place: int) -> int:
    return FIRST_ID + place % IDS


@dataclass(frozen=True, slots=True)
class RefusedPlace:
    """A message that the broker will not take."""

    place: int
    reason: Reason
    text: str


class Forwarding:
    """How far the messages of an outbox have come, by place.

    stored: the file says that the broker has everything below; received: it has, and the file is to be told
    sent: the next one to send; release: ids from this place on, below `stored`, may wait for PUBREL
    """

    def __init__(self, stored: int, release: int, next_place: int) -> None:
        """next_place: behind the last message of the file: an earlier process may have sent some of them"""
        self.stored, self.release = stored, min(release, stored)
        self.received = self.sent = stored
        self.qos = 2
        self.refusals: list[RefusedPlace] = []  # to be counted
        self._window = 0  # 0: not connected
        self._keeps_session = False
        self._answered: set[int] = set()  # places from `received` on
        self._completed: set[int] = set()  # places from `release` on with PUBCOMP
        self._again: set[int] = set()  # places to be sent again after a temporary refusal
        self._old_end = self.release  # ids of places below are released before anything else is sent
        self._sent_before = min(next_place, stored + WINDOW_MAX)  # places below may have been sent

    # --- connections

    def connected(self, *, session_present: bool, window: int, qos: int) -> int:
        """Begin a connection; returns how many messages may be stored twice now: the broker has lost the session.

        qos: 2, or 1 where the broker takes no 2; window: the broker's receive maximum"""
        self.qos = qos
        self._window = min(window, WINDOW_MAX)
        self._keeps_session = session_present
        self._answered.clear()
        self._again.clear()
        self._completed.clear()
        doubtful = 0
        if not session_present or qos < 2:
            # No id is in use. What was sent without PUBREC may be stored, and is sent once more.
            doubtful = max(0, self._sent_before - self.stored)
            self.release = self.stored
        self._old_end = self.stored
        self.received = self.sent = self.stored
        return doubtful

    def lost(self) -> None:
        self._window = 0

    @property
    def is_connected(self) -> bool:
        return self._window > 0

    @property
    def is_releasing(self) -> bool:
        """Ids that an earlier connection used are being released: nothing is sent before each has its PUBCOMP."""
        return self.release < self._old_end

    def old_packets(self) -> list[Packet]:
        """PUBREL for these ids, at the beginning of a connection and behind `dropped`."""
        return [Pubrel(packet_id_of(place)) for place in self._old_places()]

    def _old_places(self) -> range:
        return range(self.release, min(self._old_end, self.release + IDS))

    # --- sending

    def room(self) -> int:
        """How many messages may be sent now, from `sent` on."""
        if not self._window or self.is_releasing or self._again:
            return 0
        return max(0, self._window - (self.sent - self.release))

    @property
    def is_repeated(self) -> bool:
        """Whether the message at `sent` may have been sent before, in this session: DUP."""
        return self._keeps_session and self.sent < self._sent_before

    def note_sent(self) -> None:
        """The message at `sent` is on its way."""
        self.sent += 1
        self._sent_before = max(self._sent_before, self.sent)

    def skip(self, end: int) -> None:
        """Messages from `sent` up to this place are given up: damaged or expired."""
        self._answered.update(range(self.sent, end))
        self.sent = end
        self._sent_before = max(self._sent_before, end)
        self._advance()

    @property
    def waits_to_send_again(self) -> bool:
        """All that is on its way is answered, and some of it was refused for now."""
        return bool(self._again) and len(self._again) == self.sent - self.received - len(self._answered)

    def take_again(self) -> list[int]:
        """Places to send again, after a pause."""
        again, self._again = sorted(self._again), set()
        return again

    # --- answers

    def receive(self, packet: Packet) -> list[Packet]:
        """An answer of the broker with one of our ids; returns what follows."""
        if isinstance(packet, Puback | Pubrec):
            self._receive_stored(packet)
        elif isinstance(packet, Pubcomp):
            end = self._old_end if self.is_releasing else self.stored
            place = maybe_place(packet.packet_id, self.release, end)
            if place is not None:
                return self._complete(place)
        return []

    def _receive_stored(self, packet: Puback | Pubrec) -> None:
        place = maybe_place(packet.packet_id, self.received, self.sent)
        if place is None or place in self._answered:
            return  # of one that was dropped meanwhile
        reason = packet.reason
        if reason.is_error and reason != Reason.PACKET_IDENTIFIER_IN_USE:  # in use: the broker has it
            if reason in TEMPORARY_REFUSALS:
                self._again.add(place)
                return
            self.refusals.append(RefusedPlace(place, reason, packet.properties.get("reason_string", reason.text)))
        self._answered.add(place)
        self._again.discard(place)
        self._advance()

    def _advance(self) -> None:
        while self.received in self._answered:
            self._answered.remove(self.received)
            self.received += 1

    def _complete(self, place: int) -> list[Packet]:
        self._completed.add(place)
        if self.is_releasing:
            if len(self._completed) < len(self._old_places()):
                return []
            self._completed.clear()
            self.release = self._old_end
            return [Pubrel(packet_id_of(each)) for each in range(self.release, self.stored)]
        while self.release in self._completed:
            self._completed.remove(self.release)
            self.release += 1
        return []

    # --- the file

    def noted(self, stored: int) -> list[Packet]:
        """The file says that everything below `stored`, which was `received`, is stored; returns what follows."""
        before, self.stored = self.stored, max(stored, self.stored)
        if self.qos < 2:
            self.release = self._old_end = self.stored
            return []
        if not self._window or self.is_releasing:
            return []  # the next connection, or the end of this release, begins with them
        return [Pubrel(packet_id_of(place)) for place in range(before, self.stored)]

    def dropped(self, stored: int) -> list[Packet]:
        """Everything below is given up; what of it is on its way may arrive all the same. Returns what follows."""
        if stored <= self.stored:
            return []
        uses_ids = self.qos == 2 and self.release < min(self._sent_before, stored)
        self.stored = stored
        self.received, self.sent = max(self.received, stored), max(self.sent, stored)
        self._sent_before = max(self._sent_before, stored)
        self._answered = {place for place in self._answered if place >= self.received}
        self._again = {place for place in self._again if place >= self.received}
        self._advance()
        if not uses_ids:
            self.release = self._old_end = stored
            return []
        self._old_end = stored
        self._completed.clear()
        return self.old_packets() if self._window else []


def maybe_place(packet_id: int, first: int, end: int) -> int | None:
    """The place in first..end with this id; None: it is of none."""
    place = first + (packet_id - FIRST_ID - first) % IDS
    return place if place < end else None

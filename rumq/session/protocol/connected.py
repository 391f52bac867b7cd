"""One client's side of the protocol, from its first byte to its last. MQTT 5.0, 3 and 4; MQTT 3.1.1 likewise.

Bytes come in through `receive`, packets go out through the outbox, and what the broker is to do becomes commands.
The order of packets is a table: what may come before CONNECT is accepted, and what a client may send at all.
Knows no socket, no thread, no file; the time is the house's."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from router.commands import Attach
from rumq.auth.identity import Certificate, Identity
from rumq.auth.permit import Permit
from rumq.mqtt import packets as p
from rumq.mqtt.encode import encode
from rumq.mqtt.errors import MqttFault, UnsupportedVersion
from rumq.mqtt.frames import frame_at
from rumq.mqtt.kernels import ingest
from rumq.mqtt.kernels.ingest import cut
from rumq.mqtt.kernels.window import Window
from rumq.mqtt.kernels.wire_state import Wire, open_tags
from rumq.mqtt.packet_types import PacketType
from rumq.mqtt.reasons import Reason
from rumq.session.connection.broker_port import BrokerPort
from rumq.session.connection.listener_policy import OPEN, ListenerPolicy
from rumq.session.flow_control.delivery_window import DeliveryWindow, Outbox
from rumq.session.flow_control.inflight_resend import resend
from rumq.session.flow_control.rate_limits import Bucket
from rumq.session.handshake.authentication import Authentication
from rumq.session.handshake.first_packet import first_packet, while_entering
from rumq.session.handshake.reauthentication import Reauthentication
from rumq.session.journal.recorder import tag_of
from rumq.session.protocol import authorization, control_packets
from rumq.session.protocol.publish_checks import meet_topic, provide, take_or_refuse
from rumq.session.protocol.reason_strings import explained, told_in
from rumq.session.state.session import Session

EXPIRY_LOOK_SECONDS = 60.0
WAIT_SECONDS_MAX = 10.0  # a client that sends too fast is looked at again after so long
MUCH_BYTES = 1 << 14  # at once, of one client
# What a CONNACK of 3.1.1 has a return code for; for anything else the connection is just closed.
TOLD_BEFORE_5 = frozenset(
    {
        Reason.CLIENT_IDENTIFIER_NOT_VALID, Reason.NOT_AUTHORIZED, Reason.BAD_USER_NAME_OR_PASSWORD,
        Reason.SERVER_UNAVAILABLE, Reason.SERVER_BUSY, Reason.QUOTA_EXCEEDED,
    }
)  # fmt: skip


class Transport(Outbox, Protocol):
    """The outbox of a connection, and its end."""

    peer: str

    def close(self) -> None:
        """Send what waits, then end the connection; nothing more is read from it."""

    def pause_reading(self) -> None:
        """Read nothing until `resume_reading`."""

    def resume_reading(self) -> None:
        """Take what was read and not taken, and read on."""


class Link:
    """The protocol state of one connection."""

    is_bus = False

    __slots__ = (
        "attaching", "barriers", "buckets", "certificate", "claimed", "client_max_packet", "closed", "connected_at",
        "entering", "entrance", "expires_at", "flow", "forbidden", "heard_at", "holds", "house", "keep_alive",
        "limits", "method", "named", "paused", "permit", "proving", "raised", "session", "timer", "topics",
        "transport", "unsent", "version", "wants_problem_information", "who", "wire",
    )  # fmt: skip

    def __init__(self, house: BrokerPort, transport: Transport, entrance: ListenerPolicy = OPEN) -> None:
        """entrance: of the listener that the connection came through"""
        self.house = house
        self.transport = transport
        self.entrance = entrance
        self.limits = entrance.limits or house.limits
        self.topics = house.topics  # those that it may publish to without being asked
        self.certificate: Certificate | None = None  # that TLS has checked
        self.method: str | None = None  # of enhanced authentication, if CONNECT named one
        self.proving: Reauthentication | None = None  # it shows once more who it is
        self.expires_at: float | None = None  # monotonic seconds: who it is holds so long
        self.claimed = ""  # the client id, as far as CONNECT says it
        self.named = ""  # the user, likewise
        self.entering: Authentication | None = None  # CONNECT is here, CONNACK is not out
        self.who: Identity | None = None
        self.permit: Permit | None = None  # None: everything
        self.buckets: tuple[Bucket, ...] = ()  # what it sends is taken from these
        self.forbidden = 0  # how often it tried what it may not
        self.session: Session | None = None
        self.wire: Wire | None = None
        self.flow: DeliveryWindow | None = None
        self.version = 0
        self.closed = False
        self.unsent: deque[tuple[int, int, int]] | None = (
            None  # in flight when the client left, not sent again yet
        )
        self.keep_alive = 0.0
        self.holds: Any = None  # what waits for the log, oldest first
        self.raised = False  # the next of `holds` is a barrier: no message may overtake it
        self.barriers = 0  # how many of `holds` are
        self.paused = False  # a packet waits for something; those behind it are not taken
        self.attaching = False  # delivery begins once CONNACK is out
        self.client_max_packet = 0
        self.wants_problem_information = True
        self.heard_at = self.connected_at = house.monotonic
        self.timer: list[Any] | None = None  # of the house's watch

    # What comes in

    def receive(self, data: Any, pos: int, end: int) -> int:
        """Take whole packets of `data[pos:end]`; returns the position of the first byte not taken."""
        self.heard_at = self.house.monotonic
        if self.paused:
            return pos
        if self.entering is not None:
            return while_entering(self, data, pos, end)
        try:
            if self.wire is None:
                pos = first_packet(self, data, pos, end)
                if self.wire is None:
                    return pos
            if self.buckets:
                return self._metered(self.wire, data, pos, end)
            return self._packets(self.wire, data, pos, end)
        except MqttFault as fault:
            self.refuse(fault)
            return end

    def _metered(self, wire: Wire, data: Any, pos: int, end: int) -> int:
        """Take packets, and read no more for as long as the client has sent too fast."""
        before = wire.published
        taken = self._packets(wire, data, pos, end)
        now = self.house.monotonic
        wait = max([bucket.spend(wire.published - before, taken - pos, now) for bucket in self.buckets])
        if wait > 0 and not self.closed and not self.paused:
            self.pause()
            self.house.later(min(wait, WAIT_SECONDS_MAX), partial(self.alone, self.take_up))
        return taken

    def _packets(self, wire: Wire, data: Any, pos: int, end: int) -> int:
        house = self.house
        began, cold = pos, 0
        while True:
            if cold >= control_packets.PACKETS_A_TURN and not self.paused:
                # However many made-up topics or requests a client sends at once, others have their turn between them.
                self.pause()
                self.next_turn(self.take_up)
                break
            pos = cut(wire, house.batches, data, pos, end, self.topics)
            stop = wire.stop
            if stop == ingest.MORE:
                break
            if stop == ingest.TOPIC:
                cold += 1
                if not meet_topic(self, wire.topic):
                    pos = take_or_refuse(self, wire, data, pos, end)
            elif stop == ingest.RETAIN:
                cold += 1
                pos = take_or_refuse(self, wire, data, pos, end)
            elif stop in (ingest.PUBLISHER, ingest.FULL, ingest.FAULT):
                provide(self, wire)
            else:
                after = pos + wire.frame_bytes
                if after > end:
                    break
                found = frame_at(data, pos, end)
                assert found is not None
                cold += control_packets.take(self, data[pos], bytes(data[pos + found[0] : after]))
                pos = after
                if self.closed:
                    return end
                if self.paused:
                    break
        if wire.noted:
            assert self.session is not None
            house.journal.acknowledged(self.session, bytes(wire.noted))
            wire.noted.clear()
        if wire.acks:
            if wire.ack_parts or self.holds:
                if wire.durable_bit and wire.qos2_open is not None:
                    self._tagged()
                house.hold(self)
            else:  # answers that promise nothing about the log
                self.transport.write(bytes(wire.acks))
                wire.acks.clear()
        if wire.touched:
            slowing, much = house.slowing, pos - began >= MUCH_BYTES
            if wire.touched & (slowing.crowded if much else slowing.behind):
                house.slow(self, much)
            wire.touched = 0
        self._credit()
        return pos

    def pause(self) -> None:
        """Take no packet until `go_on`."""
        self.paused = True
        self.transport.pause_reading()

    def go_on(self, call: Callable[[], None]) -> None:
        """What a packet waited for is there: finish it, and take those behind it."""
        if self.closed:
            return
        self.paused = False
        try:
            call()
        except MqttFault as fault:
            self.refuse(fault)
        except Exception:
            self.house.crashed(self.transport)
        else:
            self.transport.resume_reading()

    def next_turn(self, call: Callable[[], None]) -> None:
        """Go on when the next turn begins, if the client is there still."""
        self.house.next_turn(partial(self.alone, call))

    def alone(self, call: Callable[[], None]) -> None:
        """Call back, whoever's turn it is: what goes wrong ends this client and nobody else."""
        if self.closed:
            return
        try:
            call()
        except MqttFault as fault:
            self.refuse(fault)
        except Exception:
            self.house.crashed(self.transport)

    def take_up(self) -> None:
        """Go on where a turn's share of packets ended."""
        self.go_on(lambda: None)

    def _credit(self) -> None:
        """Go on with delivery once enough of the window is free again."""
        flow = self.flow
        if self.unsent:
            self.house.send_again(self)
        if flow is not None and flow.window_full and flow.window is not None:
            # Waiting for a part of the window keeps deliveries in batches; the rest is still in flight.
            window = flow.window
            if window.credit() >= min(64, max(1, window.limit // 4)) or window.in_flight == 0:
                flow.window_full = False
                self.house.refresh(self)

    # What goes out

    def send(self, packet: p.Packet) -> None:
        if self.wire is not None:
            self.wire.answers += 1
        self.transport.write(encode(packet, self.version))

    def send_explained(self, packet: Any, why: str | None) -> None:
        if self.wire is not None:
            self.wire.answers += 1
        self.transport.write(self.explained(packet, why))

    def explained(self, packet: Any, why: str | None) -> bytes:
        return explained(self, packet, why)

    def promise(self, data: bytes, *, barrier: bool) -> None:
        """Send an answer that must stay true when the broker dies: of a durable session it waits for the journal.

        barrier: messages come after it"""
        wire = self.wire
        if wire is not None:
            wire.answers += 1
        if wire is None or not wire.durable_bit:
            self.transport.write(data)
            return
        wire.acks += data
        wire.ack_parts |= wire.durable_bit
        if barrier:
            self.raised = True
            if self.flow is not None:
                self.flow.waits = True
        self.house.hold(self)

    def _tagged(self) -> None:
        session = self.session
        assert session is not None
        self.house.journal.qos2_changed[session.number] = session

    def note(self, head: int, packet_id: int) -> None:
        """Have the journal know of an acknowledgement that the kernel did not see."""
        session = self.session
        if session is not None and session.durable:
            self.house.journal.acknowledged_one(session, head, packet_id)

    def sent(self, window: Window, code: int, first: int, data: Any) -> None:
        """Messages from number `first` on have been numbered: note it, and send them, those of QoS 2 once it is
        written. Sent before, they would come twice after a crash: nobody would know under which packet ids."""
        session = self.session
        assert session is not None
        states, lsns, _ = window.slots(first, window.next)
        self.house.journal.sent(session, code, first, states, lsns)
        if 2 in states and self.flow is not None:
            self.flow.waits = True
            self.house.hold_messages(self, data)
        else:
            self.transport.write(data)

    def released(self) -> None:
        """The last barrier has gone out: messages may follow."""
        if self.flow is not None:
            self.flow.waits = False
        if self.attaching:
            self.attaching = False
            self.attach()
        else:
            self.house.refresh(self)

    # The end

    def refuse(self, fault: MqttFault, *, private: bool = False) -> None:
        """End the connection for a fault of the client's, saying which where the version has words for it.

        private: why is for the operator alone"""
        if self.closed:
            return
        self.house.event("client.refused", self, reason=int(fault.reason), why=fault.message)
        told = None if private else fault.message
        if self.session is not None:
            if self.version == 5 and not self.attaching:
                self.send_explained(p.Disconnect(told_in(PacketType.DISCONNECT, fault.reason)), told)
        elif self.version == 5:
            refusal = p.Connack(False, told_in(PacketType.CONNACK, fault.reason))
            if not self.client_max_packet or len(encode(refusal, 5)) <= self.client_max_packet:
                self.send_explained(refusal, told)
        elif isinstance(fault, UnsupportedVersion):
            self.version = fault.answer_version
            self.send(p.Connack(False, fault.reason))
        elif self.version and fault.reason in TOLD_BEFORE_5:
            self.send(p.Connack(False, fault.reason))
        self.end(with_will=True)

    def turned_away(self, why: str) -> None:
        """Make room for others, before it has logged in."""
        if self.entering is not None:
            self.refuse(MqttFault(why, Reason.SERVER_BUSY))
        else:
            self.end(with_will=False)

    def dismiss(self, reason: Reason, why: str | None = None) -> None:
        """End the connection for a reason of ours. MQTT 5.0, 3.14.2.1."""
        if self.closed:
            return
        if self.session is not None and self.version == 5 and not self.attaching:
            self.send_explained(p.Disconnect(reason), why)
        self.end(with_will=True)

    def lost(self, why: str) -> None:
        """The network ended the connection."""
        if self.closed:
            return
        self.house.event("client.lost", self, why=why)
        self.end(with_will=True)

    def end(self, *, with_will: bool) -> None:
        """Part from the session and close the connection."""
        if self.closed:
            return
        self.closed = True
        self.house.keep_alive_monitor.cancel(self)
        if self.entering is not None:
            self.entering.close()
            self.entering = None
        if self.proving is not None:
            self.proving.close()
            self.proving = None
        session, wire, flow = self.session, self.wire, self.flow
        if wire is not None:
            wire.acks.clear()
            if wire.noted and session is not None:
                self.house.journal.acknowledged(session, bytes(wire.noted))
                wire.noted.clear()
        if flow is not None:
            flow.close()
        if session is not None and wire is not None and flow is not None:
            session.qos2_open = wire.qos2_open
            session.window = flow.window
            self.count()
            self.entrance.quotas.leave(self.who.user if self.who is not None else None)
            if session.link is self:
                self.house.registry.leave(session, with_will=with_will, now=self.house.monotonic)
        self.transport.close()

    def count(self) -> None:
        """Hand what was counted since the last time to the session and to the house."""
        session, wire, flow, totals = self.session, self.wire, self.flow, self.house.shard_totals
        if session is None or wire is None or flow is None:
            return
        published, delivered = wire.published, flow.delivered
        session.counts.published += published
        session.counts.delivered += delivered
        totals.published += published
        totals.delivered += delivered
        totals.packets_in += published + wire.others
        totals.packets_out += delivered + wire.answers
        wire.published = wire.others = wire.answers = flow.delivered = 0

    def note_expiry(self) -> None:
        """Have the connection end when what it was let in by does."""
        who, house = self.who, self.house
        assert who is not None
        self.expires_at = None
        if who.expires_us is not None:
            self.expires_at = house.monotonic + (who.expires_us - house.now_us) / 1_000_000
            house.keep_alive_monitor.add(self, min(self.expires_at, house.monotonic + EXPIRY_LOOK_SECONDS))

    @property
    def says_to_be(self) -> str:
        """The name of the user that CONNECT gave, or without one the client id; nothing before it came."""
        return self.named or self.claimed

    @property
    def address(self) -> str:
        """Where the client is, without the port."""
        return self.transport.peer.rpartition(":")[0] or self.transport.peer

    # The beginning: called by rumq.session.handshake.connect once CONNECT is accepted

    def begin(self, session: Session, window_limit: int, alias_max: int, receive_maximum: int) -> None:
        """Tie the session to this connection; what is in flight is sent again first. MQTT 5.0, 4.4."""
        limits = self.limits
        self.session = session
        session.link = self
        wire = Wire(self.version == 5, limits.packet_bytes_max, receive_maximum, alias_max)
        wire.others = 1  # CONNECT
        self.house.shard_totals.connections += 1
        wire.qos_max = limits.maximum_qos
        wire.retain_available = limits.retain_available
        if session.publishers is None:
            session.publishers = [0] * len(self.house.batches)
        wire.publishers = session.publishers
        wire.qos2_open = session.qos2_open
        wire.session_tag = tag_of(session.number)
        wire.unacknowledged = len(open_tags(wire)) if wire.qos2_open is not None else 0

        def make_window() -> Window:
            made = Window(window_limit)
            wire.window = made
            session.window = made
            return made

        if session.window is not None:
            session.window.limit = window_limit
            wire.window = session.window
        if session.durable:
            wire.durable_bit = self.house.journal_bit
        self.wire = wire
        noted = self if session.durable else None
        self.flow = DeliveryWindow(self.transport, make_window, session.window, self.house.commands, noted)
        authorization.hold(self)
        self.house.logged_in(self)

    def attach(self) -> None:
        """Start delivery: after CONNACK, and after what was in flight."""
        assert self.session is not None and self.flow is not None
        if self.raised or self.barriers:
            self.attaching = True
            return
        self.unsent = resend(self.session.window, self.send)
        if self.unsent:
            self.house.send_again(self)  # attaches when that is done
        else:
            self.house.commands.put(Attach(self.session.subscriber, self.flow))

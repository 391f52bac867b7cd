"""One client after CONNACK: its packets in, answers and deliveries out. MQTT 5.0, 3 and 4; MQTT 3.1.1 likewise.

The kernel takes PUBLISH and short acknowledgements by the batch; what it leaves over is for `publish_checks` and
`control_packets`. What the broker is to do becomes commands; the time is the broker's."""
# compiled: hot

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import inf

from rumq.mqtt import packets as p
from rumq.mqtt.encode import encode
from rumq.mqtt.errors import MqttFault
from rumq.mqtt.frames import frame_at
from rumq.mqtt.kernels import ingest
from rumq.mqtt.kernels.ingest import MORE, cut
from rumq.mqtt.kernels.wire_state import Wire
from rumq.mqtt.packet_types import FIRST_BYTE, PacketType
from rumq.mqtt.properties import Properties
from rumq.mqtt.reasons import Reason
from rumq.session.connection.client_state import Client, Reauthenticator, run_confined
from rumq.session.connection.packet_order import State
from rumq.session.connection.pending_acks import PendingAcks
from rumq.session.flow_control.rate_limits import Bucket
from rumq.session.ports.transport import Receiver
from rumq.session.protocol import control_packets
from rumq.session.protocol.deliveries import NO_ACKS, NO_DELIVERIES, NO_FLOW, Deliveries, delivery_window
from rumq.session.protocol.publish_checks import TopicWaits, accept_topic, publish_one, supply
from rumq.session.protocol.reason_strings import allowed_reason, explained
from rumq.session.state.session import Session

WAIT_SECONDS_MAX = 10.0  # a client over its rate is checked again after so long
BULK_BYTES = 1 << 14  # of one read
MODEST_BYTES = 1 << 11  # of one read of who sends a little
MODEST_READS = 64  # after one in bulk, before it sends a little
DUP = 8  # in the first byte of PUBLISH
PINGREQ = FIRST_BYTE[PacketType.PINGREQ]


class Connected(Receiver):
    """The handler of a connection from CONNACK on. reauthentication: None without a method of authentication

    is_active: it has subscribed, or acknowledgements waited for the log; until then `acks`, `flow` and `deliveries` are
    `NO_ACKS`, `NO_FLOW` and `NO_DELIVERIES`, which all idle connections share
    bulk_reads: so many more reads do not count as of who sends a little
    bytes_in, bytes_out: of its transport that were added to the shard's already"""

    is_bus = False

    __slots__ = (
        "_turn", "acks", "broker", "buckets", "bulk_reads", "bytes_in", "bytes_out", "client", "deliveries", "due_at",
        "due_place", "flow", "heard_at", "held", "is_active", "is_metered", "paused", "reauthentication", "session",
        "transport", "window_limit", "wire",
    )  # fmt: skip

    def __init__(self, client: Client, session: Session, wire: Wire, window_limit: int) -> None:
        """Tie a session to a connection. window_limit: how many messages of QoS 1 and 2 may be in flight"""
        self.client, self.session, self.wire = client, session, wire
        self.broker, self.transport = client.broker, client.transport
        self._turn = client.broker.turn_view
        self.buckets: tuple[Bucket, ...] = ()  # its rate limiter's
        self.bulk_reads = 0
        self.bytes_in = self.bytes_out = 0
        self.reauthentication: Reauthenticator | None = None
        self.paused = False  # a packet waits for something; those behind it are not taken
        self.is_metered = False  # it is paused for its rate alone
        self.held = False  # it is about to go to another leader: nothing is read (`rumq.shards.moves`)
        self.heard_at = self._turn.clock.monotonic
        self.due_at, self.due_place = inf, 0  # in the wheel of the keep-alive monitor

        self.window_limit = window_limit
        self.is_active = False
        self.acks, self.flow, self.deliveries = NO_ACKS, NO_FLOW, NO_DELIVERIES
        if session.durable or session.has_subscriber or session.window is not None:
            self.activate()
        client.session, client.wire = session, wire
        session.link = self.transport.link = self

    def activate(self) -> None:
        """Have `acks`, `flow` and `deliveries` of its own; these are to be started. Nothing happens the second time."""
        if self.is_active:
            return
        client, session, wire = self.client, self.session, self.wire
        self.is_active = True
        session.own_subscriber()
        self.acks = PendingAcks(self.broker, session, wire, self.transport)
        self.flow = delivery_window(client, session, wire, self.window_limit, self.acks)
        self.deliveries = Deliveries(client, session, self.flow, self.acks, self)
        self.acks.open(self.flow, self.deliveries)

    def ensure_active(self) -> None:
        """To be called before anything is subscribed to, or waits for the log."""
        if not self.is_active:
            self.activate()
            self.deliveries.start()

    @property
    def client_id(self) -> str:
        return self.session.client_id

    @property
    def state(self) -> State:
        if self.paused:
            return State.PAUSED
        return State.CONNECTED if self.reauthentication is None else self.reauthentication.state

    def receive(self, data: bytearray, pos: int, end: int) -> int:
        """Take whole packets of `data[pos:end]`; returns the position of the first byte not taken."""
        self.heard_at = self._turn.clock.monotonic
        if self.paused:
            return pos
        if end - pos == 2 and data[pos] == PINGREQ and self._answer_ping(data[pos + 1]):
            return end
        try:
            if self.buckets:
                return self._metered(data, pos, end)
            return self._packets(data, pos, end)
        except MqttFault as fault:
            self.refuse(fault)
            return end

    def _answer_ping(self, length: int) -> bool:
        """Answer a PINGREQ that came alone, unless acknowledgements go out before it or its client is metered."""
        wire = self.wire
        if length or self.buckets or wire.acks or self.acks.holds or self.deliveries.unsent:
            return False
        wire.others += 1
        wire.answers += 1
        self.transport.write(control_packets.PINGRESP)
        self.transport.is_quiet = True
        return True

    def _metered(self, data: bytearray, pos: int, end: int) -> int:
        """Take packets, and read no more until the client's buckets have refilled."""
        before = self.wire.published
        taken = self._packets(data, pos, end)
        now, published = self.broker.clock.monotonic, self.wire.published - before
        self.transport.is_quiet = False
        wait = max([bucket.spend(published, taken - pos, now) for bucket in self.buckets])
        if wait > 0 and not self.client.closed and not self.paused:
            self._wait(wait)
        return taken

    def _wait(self, seconds: float) -> None:
        """Read no more for a time, 0.0 for until the next turn."""
        self.pause()
        self.is_metered = True
        if seconds:
            self.broker.later(min(seconds, WAIT_SECONDS_MAX), partial(run_confined, self, self.resume))
        else:
            self.next_turn(self.resume)

    def _packets(self, data: bytearray, pos: int, end: int) -> int:
        client, wire = self.client, self.wire
        began, cold, is_plain = pos, 0, True
        published, answers = wire.published, wire.answers
        while True:
            if cold and cold >= control_packets.PACKETS_A_TURN and not self.paused:
                # However many made-up topics or requests a client sends at once, others have their turn between them.
                self.pause()
                self.next_turn(self.resume)
                break
            pos = cut(wire, self._turn.batches, data, pos, end, client.topics)
            stop = wire.stop
            if stop == MORE:
                break
            is_plain = False
            if stop == ingest.TOPIC:
                cold += 1
                try:
                    is_accepted = accept_topic(client, wire.topic)
                except TopicWaits as topic:
                    self._wait(topic.seconds)
                    break
                if not is_accepted:
                    pos = publish_one(self, wire, data, pos, end)
                    if self.paused:
                        break
            elif stop == ingest.RETAIN:
                cold += 1
                pos = publish_one(self, wire, data, pos, end)
                if self.paused:
                    break
            elif stop == ingest.UNDECIDED:
                if not self.broker.publishing.undecided.takes_publish(self, is_again=bool(data[pos] & DUP)):
                    break
            elif stop in (ingest.PUBLISHER, ingest.FULL, ingest.FAULT):
                supply(client, wire)
            else:
                after = pos + wire.frame_bytes
                if after > end:
                    break
                found = frame_at(data, pos, end)
                assert found is not None
                cold += control_packets.serve(self, data[pos], bytes(data[pos + found[0] : after]))
                pos = after
                if client.closed:
                    return end
                if self.paused:
                    break
        if is_plain and began < pos == end and wire.published == published and wire.answers == answers:
            self._take_acknowledged()
        else:
            self._answer(pos - began)
        return pos

    def _take_acknowledged(self) -> None:
        """End a read that brought nothing but PUBACKs and PUBCOMPs; mostly nobody has anything to do for them.

        The session's journal notes them, and a window that was full, or messages to be sent again, go on."""
        wire = self.wire
        if not (wire.noted or wire.acks or self.acks.holds or self.flow.window_full or self.deliveries.unsent):
            self.transport.is_quiet = True
        self._answer(0)

    def _answer(self, taken: int) -> None:
        """Answer the packets of a read, and go on with deliveries. taken: its bytes"""
        wire = self.wire
        if wire.noted:
            self.acks.record_noted()
        if wire.acks:
            if wire.ack_parts or self.acks.holds:
                self._note_packet_ids()
                if not self.is_active:
                    self.ensure_active()
                self.acks.promise_log()
            else:  # answers that promise nothing about the log
                acks, wire.acks = wire.acks, None
                self.transport.write(acks)
        if wire.touched:
            bulk = taken >= BULK_BYTES
            if bulk:
                self.bulk_reads = MODEST_READS
                self._turn.backpressure.bulk |= wire.touched
            elif self.bulk_reads:
                self.bulk_reads -= 1
            elif taken <= MODEST_BYTES:
                self._turn.backpressure.modest |= wire.touched
            if wire.touched & (self._turn.backpressure.crowded if bulk else self._turn.backpressure.behind):
                self.broker.publishing.pause_publisher(self.client, bulk)
            wire.touched = 0
        self.deliveries.acknowledged()

    def _note_packet_ids(self) -> None:
        """Have the next checkpoint say which inbound QoS 2 messages wait for PUBREL.

        After a crash the log is searched for such messages from the last checkpoint on alone."""
        wire = self.wire
        if wire.journal_part and wire.qos2_open is not None:
            self.broker.journal.qos2_changed[self.session.number] = self.session

    def promise(self, data: bytes, *, barrier: bool) -> None:
        """Send an answer, of a durable session once the journal has what it promises: `PendingAcks.promise`."""
        if self.is_active:
            self.acks.promise(data, barrier=barrier)
        else:
            self.wire.answers += 1
            self.transport.write(data)

    def pause(self) -> None:
        self.paused = True
        self.transport.pause_reading()

    def resume(self, call: Callable[[], None] | None = None) -> None:
        if not self.client.closed:
            self.paused = self.is_metered = False
            if call is not None:
                run_confined(self, call)
            if not (self.client.closed or self.held or self.paused):
                self.transport.resume_reading()

    def next_turn(self, call: Callable[[], None]) -> None:
        self.heard_at = self._turn.clock.monotonic  # it is at work here: what it sends meanwhile is not read
        self.broker.next_turn(partial(run_confined, self, call))

    def send(self, packet: p.Packet) -> None:
        self.wire.answers += 1
        self.transport.write(encode(packet, self.client.version))

    def drained(self) -> None:
        self.deliveries.go_on()

    def refuse(self, fault: MqttFault, version: int = 0) -> None:
        if not self.client.closed:
            self.broker.event("client.refused", self.client, reason=int(fault.reason), why=fault.message)
            self.dismiss(allowed_reason(PacketType.DISCONNECT, fault.reason), fault.message)

    def turned_away(self, why: str) -> None:
        self.end(with_will=False)

    def dismiss(self, reason: Reason, why: str | None = None, reference: str = "") -> None:
        """reference: address of another node, "host:port", for a client of MQTT 5 that is to go there; empty: none"""
        if self.client.closed:
            return
        if self.client.version == 5 and not self.deliveries.connack_pending:
            self.wire.answers += 1
            packet = p.Disconnect(reason)
            if reference:
                referring = p.Disconnect(reason, Properties(server_reference=reference))
                bytes_max = self.client.packet_bytes_max
                if not bytes_max or len(encode(referring, 5)) <= bytes_max:
                    packet = referring
            self.transport.write(explained(self.client, packet, why))
        self.end(with_will=True)

    def lost(self, why: str) -> None:
        if not self.client.closed:
            self.broker.event("client.lost", self.client, why=why)
            self.end(with_will=True)

    def end(self, *, with_will: bool) -> None:
        """Part from the session and close the connection."""
        client, broker, session, wire = self.client, self.broker, self.session, self.wire
        if client.closed:
            return
        client.closed = True
        broker.keep_alive_monitor.cancel(self)
        if self.reauthentication is not None:
            self.reauthentication.close()
            self.reauthentication = None
        if wire.acks:  # of messages in the read that ends the connection, which nobody answers
            self._note_packet_ids()
        if self.is_active:
            self.acks.close()
            self.deliveries.close()
        else:
            wire.acks = None
        session.qos2_open, session.window = wire.qos2_open, self.flow.window
        self.count()
        client.policy.quotas.leave(client.quota_holder)
        client.policy.count(self.transport)
        if session.link is self:
            broker.registry.leave(session, with_will=with_will, now=broker.clock.monotonic)
        self.transport.close()

    def count(self) -> None:
        """Add what was counted since the last time to the session's and the shard's counts."""
        self.broker.shard_totals.add(self.wire, self.flow, self.session)

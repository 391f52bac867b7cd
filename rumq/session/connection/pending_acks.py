"""Acknowledgements that wait for the log: each client's in order, sent once what they promise is committed.

Nothing is acknowledged before its promise holds: PUBACK and PUBREC wait for the partition of their message; what
promises session state (CONNACK, SUBACK, PUBREL, PUBCOMP) of a durable session waits for the session journal. Messages
that must not overtake an acknowledgement wait with it. MQTT 5.0, 4.3 and 4.6; docs/explanation/durability.md.

A promise names its parts as bits: bit p is partition p, the bit behind the last partition is the session journal.
What a client promises in one step leaves together. `PendingAcks` is of one connection, `AckTracker` of a shard."""
# compiled: hot

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from rumq.mqtt.kernels.window import Window
from rumq.mqtt.kernels.wire_state import Wire, journal_bit
from rumq.mqtt.reasons import Reason
from rumq.session.flow_control.delivery_window import DeliveryWindow
from rumq.session.journal.recorder import JournalRecorder
from rumq.session.ports.clock import TurnClock
from rumq.session.ports.transport import Outbox
from rumq.session.state.histogram import Histogram
from rumq.session.state.session import Session, SessionConnection

AWAITED_SECONDS = 10.0  # after the last acknowledgement that waited for a partition, it still counts as awaited


class CommitProgress(Protocol):
    """What was appended below `next_lsn` may be acknowledged once `committed_lsn` has reached it."""

    @property
    def next_lsn(self) -> int: ...
    @property
    def committed_lsn(self) -> int: ...


class WaitingDeliveries(Protocol):
    """Messages that may not overtake an acknowledgement."""

    def released(self) -> None:
        """None has to go out first any more."""


class AckPort:
    """Where acknowledgements wait: `AckTracker`."""

    __slots__ = ()

    @property
    def journal_bit(self) -> int:
        """Of `Wire.ack_parts`: it stands for the session journal."""
        raise NotImplementedError

    def promise(self, client: PendingAcks, parts: int = 0) -> None:
        """Send the acknowledgements in the wire, as they are at the end of this step, once what they promise is true.

        parts: of the promise, bits in addition to `Wire.ack_parts`"""
        raise NotImplementedError

    def promise_messages(self, client: PendingAcks, data: bytes | bytearray | memoryview) -> None:
        """Keep messages on their way to the client until the journal entries about them are written."""
        raise NotImplementedError


class AckBroker(Protocol):
    """The part of `BrokerPort` that acknowledgements need."""

    @property
    def journal(self) -> JournalRecorder: ...

    @property
    def acks(self) -> AckPort: ...


class TracedMessage(Protocol):
    """A message that is traced."""

    def acknowledged(self) -> None: ...


class PendingAcks:
    """holds: what waits, oldest first; barriers: how many of them no message may overtake; raised: the next one will be

    flow: the deliveries that wait behind barriers; None once the connection has ended
    traces: of messages that the next acknowledgements are for; None: of none"""

    __slots__ = (
        "_deliveries",
        "_journal",
        "_port",
        "barriers",
        "flow",
        "holds",
        "raised",
        "session",
        "traces",
        "transport",
        "wire",
    )

    def __init__(self, broker: AckBroker, session: Session, wire: Wire, transport: Outbox) -> None:
        self._journal, self._port = broker.journal, broker.acks
        self._deliveries: WaitingDeliveries | None = None
        self.session, self.wire, self.transport = session, wire, transport
        self.flow: DeliveryWindow | None = None
        self.holds: list[PendingAck] | None = None
        self.raised = False
        self.barriers = 0
        self.traces: list[TracedMessage] | None = None

    def open(self, flow: DeliveryWindow, deliveries: WaitingDeliveries) -> None:
        """Before anything is promised. deliveries: told when the last barrier has gone out"""
        self.flow, self._deliveries = flow, deliveries

    @property
    def closed(self) -> bool:
        return self.flow is None

    def promise(self, data: bytes, *, barrier: bool) -> None:
        """Send an answer that must stay true when the broker dies: of a durable session once the journal has it.

        barrier: no message may go out before it"""
        wire = self.wire
        wire.answers += 1
        if not wire.journal_part:
            self.transport.write(data)
            return
        wire.answer(data)
        if barrier:
            self.raised = True
            if self.flow is not None:
                self.flow.waits = True
        self._port.promise(self, journal_bit(wire))

    def promise_log(self) -> None:
        """Send the acknowledgements of messages that are in the wire once the log has these."""
        self._port.promise(self)

    def trace(self, message: TracedMessage) -> None:
        """Tell a message of this step when its acknowledgement goes out."""
        self.traces = [*(self.traces or ()), message]

    def record(self, head: int, packet_id: int) -> None:
        """Journal an acknowledgement that the kernel has not seen. head: the packet's first byte"""
        if self.session.durable:
            self._journal.acknowledged_one(self.session, head, packet_id)

    def sent(self, window: Window, code: int, first: int, data: bytes | bytearray | memoryview) -> None:
        """Journal the packet ids of messages from number `first` on, then send them. QoS 2 waits until that is
        written: after a crash unknown ids would cause duplicates."""
        states, lsns, _ = window.slots(first, window.next)
        self._journal.sent(self.session, code, first, states, lsns)
        if 2 in states and self.flow is not None:
            self.flow.waits = True
            self._port.promise_messages(self, data)
        else:
            self.transport.write(data)

    def record_noted(self) -> None:
        """Journal the acknowledgements that the kernel has seen."""
        noted, self.wire.noted = self.wire.noted, None
        self._journal.acknowledged(self.session, bytes(noted))

    def released(self) -> None:
        """The last barrier has gone out: messages may follow."""
        if self.flow is not None and self._deliveries is not None:
            self.flow.waits = False
            self._deliveries.released()

    def close(self) -> None:
        """The connection has ended: nothing that waits is sent."""
        if self.wire.noted:
            self.record_noted()
        self.flow = self.holds = None
        self._deliveries = None  # it leads back here
        self.wire.acks = None


class PendingAck:
    """Bytes for one connection that leave together, once `parts` partitions are committed.

    barrier: no message that is delivered later may leave before them; began: when they began to wait, monotonic seconds
    """

    __slots__ = ("acks", "barrier", "began", "client", "parts", "pubacks", "traces")

    client: PendingAcks
    acks: bytes | bytearray | memoryview
    pubacks: int
    parts: int
    barrier: bool
    began: float
    traces: list[TracedMessage] | None


def hold(
    client: PendingAcks, acks: bytes | bytearray | memoryview, pubacks: int, parts: int, barrier: bool, began: float
) -> PendingAck:
    """Put bytes behind those of the client that wait already. Of most messages: no constructor unpacks arguments."""
    made = PendingAck.__new__(PendingAck)
    made.client, made.acks, made.pubacks, made.parts = client, acks, pubacks, parts
    made.barrier, made.began = barrier, began
    made.traces, client.traces = client.traces, None
    client.barriers += barrier
    if client.holds is None:
        client.holds = []
    client.holds.append(made)
    return made


class PartWaits:
    """What waits for one part of the log, in the order of the lsns that it waits for. source: of the part

    last: the highest of `lsns`; awaited_at: when an acknowledgement last began to wait, monotonic seconds"""

    __slots__ = ("acks", "awaited_at", "last", "lsns", "source")

    def __init__(self, source: CommitProgress) -> None:
        self.source = source
        self.last = 0
        self.acks: list[PendingAck] = []
        self.lsns: list[int] = []
        self.awaited_at = -AWAITED_SECONDS

    def put(self, pending: PendingAck) -> None:
        """Have it wait for what has been appended until now."""
        lsn = self.source.next_lsn
        if lsn > self.last:
            self.last = lsn
        self.lsns.append(lsn)
        self.acks.append(pending)

    def is_committed(self) -> bool:
        """Whether everything that something waits for is committed."""
        return self.source.committed_lsn >= self.last

    def ready(self) -> int:
        """How many of the oldest are committed."""
        if not self.lsns:
            return 0
        committed, count = self.source.committed_lsn, 0
        if self.last <= committed:
            return len(self.lsns)
        for lsn in self.lsns:
            if lsn > committed:
                break
            count += 1
        return count

    def drop(self, count: int) -> None:
        """Forget the oldest."""
        if count == len(self.acks):
            self.acks, self.lsns, self.last = [], [], 0
        else:
            del self.acks[:count], self.lsns[:count]


class AckTracker(AckPort):
    """urgent: by partition, whether somebody waits for what was appended since its last group

    promised: connections with acknowledgements that begin to wait when this step ends
    waits: of acknowledgements of published messages, from the turn that read them to the one that sends them"""

    def __init__(
        self, sources: Sequence[CommitProgress], flush_journal: Callable[[int], None], clock: TurnClock,
        recorder: JournalRecorder | None = None,
    ) -> None:  # fmt: skip
        """sources: of the partitions by index, and of the session journal

        flush_journal: appends this turn's entries, at a time in µs; recorder: has them; None: it is asked each time"""
        self._parts = [PartWaits(source) for source in sources]
        self._flush_journal, self._clock, self._recorder = flush_journal, clock, recorder
        self._journal_index = len(sources) - 1
        self.promised: list[PendingAcks] = []
        self._messages: list[PendingAck] = []
        self.urgent = [False] * len(sources)
        self.waits = Histogram()

    def promise(self, client: PendingAcks, parts: int = 0) -> None:
        """Send the client's `wire.acks`, as they are when this step ends, once `parts` are committed up to there.

        parts: bits, in addition to those in `wire.ack_parts`"""
        client.wire.ack_parts |= parts
        self.promised.append(client)

    def promise_messages(self, client: PendingAcks, data: bytes | bytearray | memoryview) -> None:
        """Send messages once the journal has the entries about them; no later message may overtake them."""
        self._messages.append(hold(client, data, 0, 1, True, 0.0))

    @property
    def journal_bit(self) -> int:
        return 1 << self._journal_index

    def is_awaited(self, index: int) -> bool:
        """Whether acknowledgements wait for a partition, or did a moment ago."""
        return self._clock.monotonic - self._parts[index].awaited_at < AWAITED_SECONDS

    def end_step(self) -> bool:
        """Have this step's promises wait for what has been appended until now; whether there were any."""
        if not self.promised and not self._messages:
            return False
        if self._recorder is None or self._recorder.has_entries():
            self._flush_journal(self._clock.now_us)
        if self._messages:
            messages, self._messages = self._messages, []
            for message in messages:
                self._parts[self._journal_index].put(message)
            self.urgent[self._journal_index] = True
        promised, self.promised = self.promised, []
        for client in promised:
            if client.flow is not None and client.wire.acks:
                self._wait(client)
        return True

    def _wait(self, client: PendingAcks) -> None:
        wire = client.wire
        parts = wire.ack_parts
        now = self._clock.monotonic
        left, count = parts, 0
        while left:  # bits
            left &= left - 1
            count += 1
        pending = hold(client, wire.acks, wire.pubacks, count, client.raised, now)
        wire.acks = None
        wire.ack_parts = 0
        wire.pubacks = 0
        client.raised = False
        index = 0
        while parts:
            if parts & 1:
                waits = self._parts[index]
                waits.put(pending)
                waits.awaited_at = now
                self.urgent[index] = True
                if waits.is_committed():
                    self.release(index)
            parts >>= 1
            index += 1
        if not pending.parts:
            send_ready(client)

    def give_up(self, seconds: float, why: str) -> int:
        """End the connections of those who have waited for so long: nothing was promised to them. returns: how many"""
        until = self._clock.monotonic - seconds
        links: dict[SessionConnection, None] = {}
        for waits in self._parts:
            for pending in waits.acks:
                if pending.began > until:
                    break
                link = pending.client.session.link
                if pending.began and not pending.client.closed and link is not None:
                    links[link] = None
        for link in links:
            link.dismiss(Reason.SERVER_BUSY, why)
        return len(links)

    def release(self, index: int) -> None:
        """A partition has committed more: send what has become true."""
        waits = self._parts[index]
        count, at = waits.ready(), 0
        if not count:
            return
        try:
            while at < count:
                pending = waits.acks[at]
                at += 1
                pending.parts -= 1
                if not pending.parts:
                    if pending.pubacks:
                        self.waits.observe(self._clock.monotonic - pending.began, pending.pubacks)
                    send_ready(pending.client)
        finally:
            waits.drop(at)


def send_ready(client: PendingAcks) -> None:
    """Send a client's acknowledgements up to the first one that still waits."""
    while client.holds:
        ready = client.holds[0]
        if ready.parts:
            break
        if len(client.holds) == 1:
            client.holds.pop()
        else:
            del client.holds[0]
        if client.flow is not None:
            client.wire.unacknowledged -= ready.pubacks
            client.transport.write(ready.acks)
            if ready.traces is not None:
                for trace in ready.traces:
                    trace.acknowledged()
            if ready.barrier:
                client.barriers -= 1
                if not client.barriers and not client.raised:
                    client.released()

"""Acknowledgements of one connection that wait for the log, and messages that must not overtake them.

Nothing is acknowledged before its promise holds: PUBACK and PUBREC wait for the partition of their message; what
promises session state (CONNACK, SUBACK, PUBREL, PUBCOMP) of a durable session waits for the session journal.
MQTT 5.0, 4.3 and 4.6; docs/durability.md."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from rumq.mqtt.kernels.window import Window
from rumq.mqtt.kernels.wire_state import Wire
from rumq.session.flow_control.delivery_window import DeliveryWindow, Outbox
from rumq.session.journal.recorder import JournalRecorder
from rumq.session.state.session import Session


class AckBroker(Protocol):
    """The part of `BrokerPort` that acknowledgements need."""

    journal: JournalRecorder

    def promise(self, client: PendingAcks, parts: int = 0) -> None:
        """Send the acknowledgements in the wire, as they are at the end of this step, once what they promise is true.

        parts: of the promise, bits in addition to `Wire.ack_parts`"""

    def promise_messages(self, client: PendingAcks, data: object) -> None:
        """Keep messages on their way to the client until the journal entries about them are written."""


class PendingAcks:
    """holds: what waits, oldest first; barriers: how many of them no message may overtake; raised: the next one will be

    flow: the deliveries that wait behind barriers; None once the connection has ended"""

    __slots__ = (
        "_broker",
        "_released",
        "barriers",
        "flow",
        "holds",
        "raised",
        "session",
        "transport",
        "wire",
    )

    def __init__(self, broker: AckBroker, session: Session, wire: Wire, transport: Outbox) -> None:
        self._broker = broker
        self._released: Callable[[], None] = nothing
        self.session, self.wire, self.transport = session, wire, transport
        self.flow: DeliveryWindow | None = None
        self.holds: deque[Any] | None = None
        self.raised = False
        self.barriers = 0

    def open(self, flow: DeliveryWindow, released: Callable[[], None]) -> None:
        """Before anything is promised. released: called when the last barrier has gone out"""
        self.flow, self._released = flow, released

    @property
    def closed(self) -> bool:
        return self.flow is None

    def promise(self, data: bytes, *, barrier: bool) -> None:
        """Send an answer that must stay true when the broker dies: of a durable session once the journal has it.

        barrier: no message may go out before it"""
        wire = self.wire
        wire.answers += 1
        if not wire.durable_bit:
            self.transport.write(data)
            return
        wire.acks += data
        if barrier:
            self.raised = True
            if self.flow is not None:
                self.flow.waits = True
        self._broker.promise(self, wire.durable_bit)

    def record(self, head: int, packet_id: int) -> None:
        """Journal an acknowledgement that the kernel has not seen. head: the packet's first byte"""
        if self.session.durable:
            self._broker.journal.acknowledged_one(self.session, head, packet_id)

    def sent(self, window: Window, code: int, first: int, data: object) -> None:
        """Journal the packet ids of messages from number `first` on, then send them. QoS 2 waits until that is
        written: after a crash unknown ids would cause duplicates."""
        states, lsns, _ = window.slots(first, window.next)
        self._broker.journal.sent(self.session, code, first, states, lsns)
        if 2 in states and self.flow is not None:
            self.flow.waits = True
            self._broker.promise_messages(self, data)
        else:
            self.transport.write(data)

    def record_noted(self) -> None:
        """Journal the acknowledgements that the kernel has seen."""
        noted = self.wire.noted
        self._broker.journal.acknowledged(self.session, bytes(noted))
        noted.clear()

    def released(self) -> None:
        """The last barrier has gone out: messages may follow."""
        if self.flow is not None:
            self.flow.waits = False
            self._released()

    def close(self) -> None:
        """The connection has ended: nothing that waits is sent."""
        if self.wire.noted:
            self.record_noted()
        self.flow = self.holds = None
        self._released = nothing  # what it is bound to leads back here
        self.wire.acks.clear()


def nothing() -> None: ...

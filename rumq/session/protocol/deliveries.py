"""When messages go out to a client: after CONNACK, behind those that were in flight, and as room and credit return.

MQTT 5.0, 4.4 and 4.9."""
# compiled: hot

from __future__ import annotations

from collections import deque
from types import SimpleNamespace
from typing import Any

from router.commands import Attach, Ready
from rumq.mqtt import packets as p
from rumq.mqtt.encode import encode
from rumq.mqtt.kernels.wire_state import Wire
from rumq.session.connection.broker_port import BrokerPort
from rumq.session.connection.client_state import Client
from rumq.session.connection.pending_acks import PendingAcks
from rumq.session.flow_control.delivery_window import DeliveryWindow
from rumq.session.flow_control.inflight_resend import resend
from rumq.session.ports.transport import ConnectionHandler, Outbox
from rumq.session.state.session import Session

PUBREC = 0x50  # first byte of the packet


def delivery_window(
    client: Client, session: Session, wire: Wire, window_limit: int, acks: PendingAcks
) -> DeliveryWindow:
    """The sink of the session while it is connected. window_limit: how many messages of QoS 1 and 2 may be in flight"""

    if session.window is not None:
        session.window.limit = window_limit
        wire.window = session.window
    noted = acks if session.durable else None
    return DeliveryWindow(client.transport, session, window_limit, client.broker.delivery.commands, noted)


class Deliveries:
    """unsent: (packet id, code, lsn) of each message that was in flight when the client left and is not sent again yet

    connack_pending: deliveries start once CONNACK is out; withheld: they do not start on this connection"""

    __slots__ = ("_acks", "_broker", "_handler", "client", "connack_pending", "flow", "session", "unsent", "withheld")

    def __init__(
        self, client: Client, session: Session, flow: DeliveryWindow, acks: PendingAcks, handler: ConnectionHandler
    ) -> None:
        self._broker: BrokerPort = client.broker
        self._acks = acks
        self._handler: ConnectionHandler | None = handler
        self.client, self.session, self.flow = client, session, flow
        self.connack_pending = self.withheld = False
        self.unsent: deque[tuple[int, int, int]] | None = None

    def start(self) -> None:
        """Deliver what the session has: after CONNACK, and after what was in flight."""
        if self._acks.raised or self._acks.barriers:
            self.connack_pending = True
            return
        if self.withheld:
            return
        self.unsent = resend(self.session.window, self._send) or None
        if self.unsent:
            self._broker.delivery.send_again(self)  # attaches when that is done
        else:
            self._broker.delivery.commands.put(Attach(self.session.subscriber, self.flow))

    def _send(self, packet: p.Packet) -> None:
        assert self.client.wire is not None
        self.client.wire.answers += 1
        self.client.transport.write(encode(packet, self.client.version))

    def release(self, packet_id: int) -> None:
        """Send PUBREL for a message that cannot be sent again, as if PUBREC had come."""
        assert self.session.window is not None
        self.session.window.acknowledge(PUBREC, packet_id)
        self._acks.record(PUBREC, packet_id)
        self._send(p.Pubrel(packet_id))

    def released(self) -> None:
        """No acknowledgement has to go out first any more."""
        if self.connack_pending:
            self.connack_pending = False
            self.start()
        elif self._handler is not None:
            self._broker.delivery.refresh(self._handler)

    def acknowledged(self) -> None:
        """The client may have acknowledged messages: go on once enough of the in-flight window is free again."""
        flow = self.flow
        if self.unsent:
            self._broker.delivery.send_again(self)
        if flow.window_full and flow.window is not None:
            # Waiting for a part of the window keeps deliveries in batches; the rest is still in flight.
            window = flow.window
            if window.credit() >= min(64, max(1, window.limit // 4)) or window.in_flight == 0:
                flow.window_full = False
                if self._handler is not None:
                    self._broker.delivery.refresh(self._handler)

    def go_on(self) -> None:
        """There is room in the outbox or in the window: have the router read on."""
        flow = self.flow
        if not flow.is_open:
            return
        if flow.retained:
            if flow.go_on_with_retained():
                self._broker.delivery.in_next_turn(self.client.transport)
            if flow.retained:
                return  # nothing else may go out before them
        self._broker.delivery.commands.put(Ready(self.session.subscriber))

    def close(self) -> None:
        """The client has gone: what is offered now is for the session to have later."""
        self.flow.close()
        self._handler = None  # it leads back here


NOBODY: Any = SimpleNamespace(broker=None, window=None, journal=None, acks=None)
NO_ACKS = PendingAcks(NOBODY, NOBODY, Wire(False, 0, 0, 0), Outbox())
NO_FLOW = DeliveryWindow(Outbox(), NOBODY, 0, NOBODY)
NO_FLOW.close()
NO_DELIVERIES = Deliveries(NOBODY, NOBODY, NO_FLOW, NO_ACKS, NOBODY)
NO_DELIVERIES.close()
"""Of all connections that have neither subscribed nor been promised anything: nothing waits and nothing is taken."""

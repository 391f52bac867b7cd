"""One connection from its first byte to CONNACK: CONNECT, then authentication. MQTT 5.0, 3.1, 3.2 and 4.12.

Then a `Connected` takes its place. Until then nothing is taken but what the client was asked for."""
# compiled: warm

from __future__ import annotations

from math import inf

from rumq.auth.identity import Identity
from rumq.mqtt import packets as p
from rumq.mqtt.encode import encode
from rumq.mqtt.errors import MqttFault, UnsupportedVersion
from rumq.mqtt.packet_types import PacketType
from rumq.mqtt.properties import Properties
from rumq.mqtt.reasons import Reason
from rumq.session.connection.broker_port import BrokerPort
from rumq.session.connection.client_state import Client
from rumq.session.connection.packet_order import State
from rumq.session.flow_control.listener_policy import OPEN, ListenerPolicy
from rumq.session.handshake import connect as connecting
from rumq.session.handshake.authentication import Authentication
from rumq.session.handshake.first_packet import read_connect, read_packet
from rumq.session.ports.transport import Transport
from rumq.session.protocol.connected import Connected
from rumq.session.protocol.reason_strings import allowed_reason, explained

# A CONNACK of 3.1.1 has a return code for these; for anything else the connection is closed without one.
TOLD_BEFORE_5 = frozenset(
    {
        Reason.CLIENT_IDENTIFIER_NOT_VALID, Reason.NOT_AUTHORIZED, Reason.BAD_USER_NAME_OR_PASSWORD,
        Reason.SERVER_UNAVAILABLE, Reason.SERVER_BUSY, Reason.QUOTA_EXCEEDED, Reason.USE_ANOTHER_SERVER,
    }
)  # fmt: skip


class Handshake:
    """The handler of a connection until CONNACK. connected: the one after that"""

    is_bus = False
    heard_at = 0.0  # no keep alive yet

    __slots__ = (
        "_connect", "authentication", "broker", "client", "connected", "due_at", "due_place", "transport",
    )  # fmt: skip

    def __init__(self, broker: BrokerPort, transport: Transport, policy: ListenerPolicy = OPEN) -> None:
        """policy: of the listener that the connection came through"""
        self.broker, self.transport = broker, transport
        self.client = Client(broker, transport, policy)
        self.authentication: Authentication | None = None  # CONNECT is here
        self.connected: Connected | None = None
        self.due_at, self.due_place = inf, 0  # in the wheel of the keep-alive monitor
        self._connect: p.Connect | None = None

    @property
    def client_id(self) -> str | None:
        return self.client.client_id

    @property
    def state(self) -> State:
        return State.AWAITING_CONNECT if self.authentication is None else self.authentication.state

    def receive(self, data: bytearray, pos: int, end: int) -> int:
        """Take the packets that it is time for; returns the position of the first byte not taken."""
        try:
            if self.authentication is None:
                pos = self._receive_connect(data, pos, end)
            else:
                pos = self._receive_auth(self.authentication, data, pos, end)
        except MqttFault as fault:
            self.refuse(fault)
        if self.client.closed:
            return end
        if self.connected is None:
            return pos
        pos = self.connected.receive(data, pos, end)
        self.transport.is_quiet = False  # whatever came behind CONNECT: a client is here
        return pos

    def _receive_connect(self, data: bytearray, pos: int, end: int) -> int:
        client = self.client
        connect, stop = read_connect(client, data, pos, end)
        if connect is None:
            return pos
        client.claimed_client_id = client.policy.client_id_of(connect, client.certificate)
        if client.claimed_client_id and self.broker.logins.hand_over(
            client, client.claimed_client_id, bytes(data[pos:end])
        ):
            self.broker.keep_alive_monitor.cancel(self)
            client.closed = True
            return end
        connecting.accept(client, connect)
        self._connect = connect
        self.authentication = Authentication(self, connect, self._authenticated)
        self.authentication.step()
        return stop

    def _receive_auth(self, authentication: Authentication, data: bytearray, pos: int, end: int) -> int:
        while authentication.state is State.CHALLENGED and not self.client.closed:
            packet, stop = read_packet(self.client, data, pos, end)
            if packet is None:
                break
            pos = stop
            authentication.receive(packet)
        return pos

    def _authenticated(self, identity: Identity, told: Properties) -> None:
        """raises: MqttFault where the client may not come in all the same"""
        assert self._connect is not None
        self.authentication = None
        self.broker.keep_alive_monitor.cancel(self)
        self.connected = connecting.enter(self.client, self._connect, identity, told)

    def drained(self) -> None: ...

    def send(self, packet: p.Packet) -> None:
        self.transport.write(encode(packet, self.client.version))

    def refuse(self, fault: MqttFault, version: int = 0) -> None:
        self.client.version = self.client.version or version
        self._refuse(fault, fault.message)

    def refuse_privately(self, fault: MqttFault) -> None:
        """As `refuse`; the operator alone is told why."""
        self._refuse(fault, None)

    def _refuse(self, fault: MqttFault, why: str | None) -> None:
        client = self.client
        if client.closed:
            return
        self.broker.event("client.refused", client, reason=int(fault.reason), why=fault.message)
        if client.version == 5:
            told = Properties(server_reference=fault.server_reference) if fault.server_reference else Properties()
            refusal = p.Connack(False, allowed_reason(PacketType.CONNACK, fault.reason), told)
            if not client.packet_bytes_max or len(encode(refusal, 5)) <= client.packet_bytes_max:
                self.transport.write(explained(client, refusal, why))
        elif isinstance(fault, UnsupportedVersion):
            client.version = fault.answer_version
            self.send(p.Connack(False, fault.reason))
        elif client.version and fault.reason in TOLD_BEFORE_5:
            self.send(p.Connack(False, fault.reason))
        self.end(with_will=True)

    def turned_away(self, why: str) -> None:
        if self.authentication is not None:
            self.refuse(MqttFault(why, Reason.SERVER_BUSY))
        else:
            self.end(with_will=False)

    def dismiss(self, reason: Reason, why: str | None = None) -> None:
        self.end(with_will=False)

    def lost(self, why: str) -> None:
        if not self.client.closed:
            self.broker.event("client.lost", self.client, why=why)
            self.end(with_will=False)

    def end(self, *, with_will: bool) -> None:
        """Close the connection; there is no will before CONNACK."""
        if self.client.closed:
            return
        self.client.closed = True
        self.broker.keep_alive_monitor.cancel(self)
        if self.authentication is not None:
            self.authentication.close()
            self.authentication = None
        self.transport.close()

"""What is known of one client while it is connected: plain values, set by the modules of the protocol.

Those modules take a `Client`, and a `Responder` where they answer or make the client wait."""
# compiled: warm

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from rumq.auth.identity import Certificate, Identity
from rumq.auth.permit import Permit
from rumq.mqtt import packets as p
from rumq.mqtt.errors import MqttFault
from rumq.mqtt.kernels.topics import TopicTable
from rumq.mqtt.kernels.wire_state import Wire
from rumq.session.connection.broker_port import BrokerPort
from rumq.session.connection.packet_order import State
from rumq.session.connection.pending_acks import PendingAcks
from rumq.session.flow_control.listener_policy import OPEN, ListenerPolicy
from rumq.session.ports.transport import ConnectionHandler, Transport
from rumq.session.state.session import Session

TopicNumbers = TopicTable | dict[bytes, int]


class Client:
    """One client. packet_bytes_max: that it takes, 0 for any; topics: those that it may publish to without a check"""

    __slots__ = (
        "authentication_method", "broker", "certificate", "claimed_client_id", "claimed_user", "closed",
        "connected_at", "expires_at", "identity", "keep_alive", "limits", "packet_bytes_max", "permit", "policy",
        "refusals", "session", "topics", "transport", "version", "wants_reason_strings", "wire",
    )  # fmt: skip

    def __init__(self, broker: BrokerPort, transport: Transport, policy: ListenerPolicy = OPEN) -> None:
        """policy: of the listener that the connection came through"""
        self.broker = broker
        self.transport = transport
        self.policy = policy
        self.limits = policy.limits or broker.limits
        self.closed = False
        self.connected_at = broker.clock.monotonic
        self.version = 0  # of MQTT; 0: not known yet
        self.certificate: Certificate | None = None  # that TLS has checked
        self.claimed_client_id = ""  # as CONNECT says; empty: it asks for one, or has not come
        self.claimed_user = ""  # likewise
        self.authentication_method: str | None = None  # of enhanced authentication, if CONNECT named one
        self.packet_bytes_max = 0
        self.wants_reason_strings = False
        self.keep_alive = 0.0  # seconds; 0: none
        self.identity: Identity | None = None  # once it is authenticated
        self.expires_at: float | None = None  # monotonic seconds: the identity is valid until then
        self.permit: Permit | None = None  # None: everything
        self.topics: TopicNumbers = broker.publishing.topics
        self.refusals = 0  # how often it tried what it may not
        self.session: Session | None = None
        self.wire: Wire | None = None

    @property
    def claimed_name(self) -> str:
        """The user name that CONNECT gave, or without one the client id; empty before it came."""
        return self.claimed_user or self.claimed_client_id

    @property
    def client_id(self) -> str | None:
        return self.session.client_id if self.session is not None else self.claimed_client_id or None

    @property
    def is_own(self) -> bool:
        """Whether it is a process of the broker's own."""
        return self.identity is not None and self.identity.is_own

    @property
    def user(self) -> str | None:
        return self.identity.user if self.identity is not None else None

    @property
    def quota_holder(self) -> str | None:
        return self.identity.quota_holder if self.identity is not None else None

    @property
    def address(self) -> str:
        """Where the client is, without the port."""
        return self.transport.peer.rpartition(":")[0] or self.transport.peer


class Responder(Protocol):
    """How a module of the protocol answers its client."""

    @property
    def client(self) -> Client: ...

    def send(self, packet: p.Packet) -> None: ...

    def refuse(self, fault: MqttFault) -> None:
        """End the connection for a fault of the client's, and say which where the version has words for it."""

    def end(self, *, with_will: bool) -> None: ...


class Reauthenticator(Protocol):
    """state: CONNECTED_BY_METHOD, REVERIFYING or RECHALLENGED"""

    state: State

    def receive(self, packet: p.Auth) -> None:
        """raises: MqttFault"""

    def close(self) -> None: ...


class RequestResponder(Responder, ConnectionHandler, Protocol):
    """How a request of a connected client is answered, and has the client's next packets wait."""

    @property
    def session(self) -> Session: ...

    @property
    def acks(self) -> PendingAcks: ...

    def ensure_active(self) -> None:
        """To be called before anything is subscribed to, or waits for the log."""

    def promise(self, data: bytes, *, barrier: bool) -> None:
        """Send an answer, of a durable session once the journal has what it promises.

        barrier: no message may go out before it"""

    @property
    def reauthentication(self) -> Reauthenticator | None: ...

    @property
    def state(self) -> State: ...

    def pause(self) -> None:
        """Take no packet until `resume`."""

    def resume(self, call: Callable[[], None] | None = None) -> None:
        """What a packet waited for is there: finish it with `call`, and take the packets behind it."""

    def next_turn(self, call: Callable[[], None]) -> None:
        """Call when the next turn begins, if the client is still there."""


def run_confined(responder: Responder, call: Callable[[], None]) -> None:
    """Make a call that waited for something, if its client is still there.

    An exception ends this client alone: the turn that the call is made in is shared."""
    client = responder.client
    if client.closed:
        return
    try:
        call()
    except MqttFault as fault:
        responder.refuse(fault)
    except Exception:
        client.broker.crashed(client.transport)

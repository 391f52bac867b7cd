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


class LoginDetails:
    """What few clients have: a user name, a certificate, a method of authentication, an end of what they came in by.
    The fields are described at those of the client."""

    __slots__ = ("authentication_method", "certificate", "claimed_user", "expires_at")

    def __init__(self) -> None:
        self.certificate: Certificate | None = None
        self.claimed_user = ""
        self.authentication_method: str | None = None
        self.expires_at: float | None = None


class Client:
    """One client. packet_bytes_max: that it takes, 0 for any; topics: those that it may publish to without a check"""

    __slots__ = (
        "_login", "broker", "claimed_client_id", "closed", "connected_at", "identity", "keep_alive", "limits",
        "packet_bytes_max", "permit", "policy", "refusals", "session", "topics", "transport", "version",
        "wants_reason_strings", "wire",
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
        self._login: LoginDetails | None = None  # None: all its fields have the values that they begin with
        self.claimed_client_id = ""  # as CONNECT says; empty: it asks for one, or has not come
        self.packet_bytes_max = 0
        self.wants_reason_strings = False
        self.keep_alive = 0.0  # seconds; 0: none
        self.identity: Identity | None = None  # once it is authenticated
        self.permit: Permit | None = None  # None: everything
        self.topics: TopicNumbers = broker.publishing.topics
        self.refusals = 0  # how often it tried what it may not
        self.session: Session | None = None
        self.wire: Wire | None = None

    @property
    def certificate(self) -> Certificate | None:
        """That TLS has checked."""
        return None if self._login is None else self._login.certificate

    @certificate.setter
    def certificate(self, value: Certificate | None) -> None:
        if self._login is not None or value is not None:
            self._own_login().certificate = value

    @property
    def claimed_user(self) -> str:
        """As CONNECT says; empty: it names none, or has not come."""
        return "" if self._login is None else self._login.claimed_user

    @claimed_user.setter
    def claimed_user(self, value: str) -> None:
        if self._login is not None or value:
            self._own_login().claimed_user = value

    @property
    def authentication_method(self) -> str | None:
        """Of enhanced authentication, if CONNECT named one."""
        return None if self._login is None else self._login.authentication_method

    @authentication_method.setter
    def authentication_method(self, value: str | None) -> None:
        if self._login is not None or value is not None:
            self._own_login().authentication_method = value

    @property
    def expires_at(self) -> float | None:
        """Monotonic seconds: the identity is valid until then."""
        return None if self._login is None else self._login.expires_at

    @expires_at.setter
    def expires_at(self, value: float | None) -> None:
        if self._login is not None or value is not None:
            self._own_login().expires_at = value

    def _own_login(self) -> LoginDetails:
        if self._login is None:
            self._login = LoginDetails()
        return self._login

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

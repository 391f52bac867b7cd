"""What the protocol of one connection needs of the broker, by what it does: a shard implements it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from router.commands import CommandQueue
from rumq.auth.identity import Identity, Work
from rumq.auth.permit import Permit
from rumq.mqtt.errors import MqttFault
from rumq.mqtt.kernels.batch import Batch
from rumq.mqtt.kernels.topics import TopicTable
from rumq.mqtt.kernels.wire_state import Wire
from rumq.mqtt.reasons import Reason
from rumq.session.connection.pending_acks import AckBroker
from rumq.session.flow_control.delivery_window import DeliveryWindow
from rumq.session.flow_control.limits import Limits
from rumq.session.flow_control.listener_policy import ListenerPolicy
from rumq.session.ports.backpressure import BackpressureBits
from rumq.session.ports.clock import TurnClock
from rumq.session.ports.transport import ConnectionHandler, Transport
from rumq.session.ports.turn_view import TurnView
from rumq.session.state.keep_alive import KeepAliveMonitor
from rumq.session.state.registry import Registry
from rumq.session.state.session import Session
from rumq.session.state.shard_totals import ShardTotals


class ClientInfo(Protocol):
    """What the broker reads of a client."""

    closed: bool
    identity: Identity | None
    packet_bytes_max: int
    permit: Permit | None
    policy: ListenerPolicy
    session: Session | None
    transport: Transport
    version: int
    wire: Wire | None

    @property
    def address(self) -> str: ...

    @property
    def claimed_name(self) -> str: ...

    @property
    def client_id(self) -> str | None: ...


class Redelivering(Protocol):
    """A client that is sent again what was in flight. unsent: (packet id, code, lsn) of each message, in order"""

    session: Session
    flow: DeliveryWindow
    unsent: deque[tuple[int, int, int]] | None

    @property
    def client(self) -> ClientInfo: ...

    def release(self, packet_id: int) -> None:
        """Send PUBREL for a message that cannot be sent again, as if PUBREC had come."""


class PublishRefusal(NamedTuple):
    """acknowledged: whether a client before MQTT 5 is told that its message was taken (3.1.1, 3.3.5-2); else it is
    disconnected, for only so does it keep the message"""

    reason: Reason
    why: str
    acknowledged: bool = False


class UndecidedMessages(Protocol):
    """Inbound QoS 2 messages that a missing shard may have stored: `rumq.shards.recovery.undecided`."""

    def concerns(self, session: Session) -> bool:
        """Whether messages of a session may be there."""

    def takes_publish(self, link: Any, *, is_again: bool) -> bool:
        """Whether the PUBLISH at which the kernel stopped is taken; else its connection waits. is_again: it has DUP"""

    def wait_for_all(self, link: Any, call: Callable[[], None]) -> None:
        """Have a connection wait for all missing shards, and `call` then."""


class LoginPort(Protocol):
    """What a client asks for before CONNACK: `rumq.shards.clients.logins`."""

    def may_buffer(self, client: ClientInfo, size: int) -> bool:
        """Whether so many bytes of a client that has not logged in may be buffered; else its connection is closed."""

    def set_waiting(self, client: ClientInfo, for_broker: bool) -> None:
        """Note who waits for whom before the login. for_broker: the client for the broker"""

    def hand_over(self, client: ClientInfo, client_id: str, data: bytes) -> bool:
        """Whether the client's session lives in another shard; then its connection is on its way there."""

    def check(self, client: ClientInfo, work: Work, done: Callable[[Any, BaseException | None], None]) -> bool:
        """Run `work` on a thread, then `done(result, fault)` on the loop. False: too many clients wait."""

    def delay_refusal(self, client: ClientInfo, answer: Callable[[], None]) -> None:
        """Call `answer`, which refuses the client, after a delay that grows with the refusals of its address."""

    def has_room(self, client: ClientInfo) -> bool:
        """Whether this listener may have one more client."""

    def login_refusal(self, client: ClientInfo, client_id: str, user: str | None) -> MqttFault | None:
        """Why this client is refused now, by the operator or for want of a majority; None: it may log in."""

    def assigned_client_id(self, prefix: str) -> str:
        """A client id that nobody uses."""

    def logged_in(self, client: ClientInfo) -> None:
        """The client no longer counts as one that has not logged in."""


class PublishPort(Protocol):
    """What a client publishes by: `rumq.shards.write_path.publish_gate`.

    topics: topic -> partition << 32 | topic id, of every topic known here that clients may publish to
    batches: what this turn published, one a partition"""

    topics: TopicTable
    batches: list[Batch]

    @property
    def backpressure(self) -> BackpressureBits: ...

    @property
    def undecided(self) -> UndecidedMessages: ...

    def topics_with(self, name: bytes) -> TopicTable | dict[bytes, int]:
        """`topics`, or those that only processes of the broker's own publish to, if this is one of them."""

    def add_topic(self, name: bytes) -> bool:
        """Give a checked topic name its partition and number; False if there is no room for another topic."""

    def match_topic(self, client: ClientInfo, name: bytes) -> float | None:
        """Match a topic that a client is about to create, at its expense.

        returns: how many seconds it has to wait before it asks again, 0.0: until the next turn; None: it is done"""

    def change_filters(self, client: ClientInfo) -> float:
        """A client is about to subscribe or unsubscribe: that topics are matched again is at its expense.

        returns: how many seconds it has to wait before it asks again; 0.0: it may"""

    def refuse_topic(self, name: bytes, client: ClientInfo, user_topics_max: int | None) -> str:
        """Count a message for a topic that there is no room for; returns why.

        user_topics_max: how many topics its user has brought into being, if it may bring no more"""

    def refuse_publish(
        self, handler: ConnectionHandler, partition: int, *, is_unanswerable: bool
    ) -> PublishRefusal | None:
        """Count a message for a partition that takes none for now.

        is_unanswerable: of QoS 1 or 2, before MQTT 5, which has no reason codes
        returns: what to answer; None: nothing, the client is dismissed when the partition takes messages again"""

    def publisher_number(self, partition: int, client_id: str) -> int:
        """The number of a publisher in a partition, never 0."""

    def pause_publisher(self, client: ClientInfo, bulk: bool) -> None:
        """Read nothing from the client until the partitions it publishes to have caught up."""


class DeliveryPort(Protocol):
    """What a client receives by: its subscriptions and its readers. `rumq.shards.clients.client_delivery`

    commands: what the router is told at the end of the turn"""

    @property
    def commands(self) -> CommandQueue: ...

    def confirm(self, asked: list[tuple[str, str]], then: Callable[[], None], *, publishers: bool = False) -> bool:
        """Whether what these filters, (as written, plain), match will come from every shard; else `then` is called
        when it does. publishers: and it is known who publishes"""

    def is_home_away(self, key: str) -> bool:
        """In such a call: whether a shared group cannot be joined, as the shard that has its cursors is away."""

    def settle(self) -> None:
        """Put what was published so far before the commands that come now."""

    def refresh(self, handler: ConnectionHandler) -> None:
        """Have the client's readers go on at the end of the turn: there is room or credit again."""

    def in_next_turn(self, transport: Transport) -> None:
        """Have the readers go on in the next turn, others in between."""

    def send_again(self, client: Redelivering) -> None:
        """Read the client's `unsent` messages from the log and send them with DUP, as far as its receive maximum
        goes; after the last one attach its readers."""


class BrokerPort(AckBroker, Protocol):
    """Time, the shard's records of its clients, and the ports; every call returns at once."""

    limits: Limits
    registry: Registry
    keep_alive_monitor: KeepAliveMonitor
    turn_view: TurnView

    @property
    def clock(self) -> TurnClock: ...

    @property
    def shard_totals(self) -> ShardTotals: ...

    @property
    def logins(self) -> LoginPort: ...

    @property
    def publishing(self) -> PublishPort: ...

    @property
    def delivery(self) -> DeliveryPort: ...

    # Calls later, faults, events

    def later(self, seconds: float, call: Callable[[], None]) -> None:
        """Call in a turn after so many seconds."""

    def next_turn(self, call: Callable[[], None]) -> None:
        """Call when the next turn begins."""

    def crashed(self, connection: Transport) -> None:
        """The exception that is being handled is a fault of ours in serving one client: it loses its connection."""

    def event(self, name: str, client: ClientInfo, **fields: object) -> None:
        """Tell the operator, with the client's id and address."""

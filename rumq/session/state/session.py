"""Session state, kept across connections. MQTT 5.0, 4.1.

Subscriptions and cursors are the router's `Subscriber`; in-flight messages to the client are a `Window`; inbound QoS 2
packet ids that wait for PUBREL are a bitmap."""
# compiled: warm

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

from router.readers.subscriber import NOT_SUBSCRIBED, Subscriber
from rumq.mqtt.kernels.window import Window
from rumq.mqtt.kernels.wire_state import Wire
from rumq.mqtt.packets import Will
from rumq.mqtt.reasons import Reason
from rumq.session.flow_control.delivery_window import DeliveryWindow
from rumq.session.flow_control.listener_policy import ListenerPolicy
from rumq.session.state.deadlines import Deadline
from rumq.session.state.session_owner import ANYBODY, Owner, key_of
from rumq.session.state.subscribed_filters import NO_FILTERS, SubscribedFilters
from rumq.session.state.wills import Author


class SessionClient(Protocol):
    """connected_at: monotonic seconds; keep_alive: seconds, 0 for none; policy: of its listener"""

    connected_at: float
    keep_alive: float
    policy: ListenerPolicy
    version: int


class SessionConnection(Protocol):
    """The connection of a session, as those who come to it through the session see it.

    flow, wire: of its outgoing and incoming messages; bytes_in, bytes_out: of its transport, counted already"""

    flow: DeliveryWindow
    wire: Wire
    bytes_in: int
    bytes_out: int

    @property
    def client(self) -> SessionClient: ...

    @property
    def transport(self) -> Any:
        """`rumq.net.connection.Connection`, or what a test has instead."""

    def count(self) -> None:
        """Add what was counted since the last call to the session's counts and the shard's totals."""

    def dismiss(self, reason: Reason, why: str | None = None) -> None:
        """End the connection with DISCONNECT."""


class Shape(NamedTuple):
    """The encoding of a client's packets. packet_max, alias_max: 0 for none; raises_qos: QoS 1 is sent as QoS 2."""

    version: int
    packet_max: int
    alias_max: int
    raises_qos: bool = False


@lru_cache(1024)
def shape_of(version: int, packet_max: int, alias_max: int, raises_qos: bool = False) -> Shape:
    """Clients alike share one."""
    return Shape(version, packet_max, alias_max, raises_qos)


class Session:
    """asked: filters as the client wrote them; holder: of `PersistentSessions`, once it outlives its connection

    shape, personal: of its `subscriber`, which is `NOT_SUBSCRIBED` before its first subscription
    publishers: number of this client in each partition, 0: none yet; None before its first message
    expires_at: monotonic seconds, None: connected; author: of the will
    missed: ranges that it lost while it was away (`rumq.shards.delivery.lost_ranges`)
    guarded: its subscriptions may bring less than they match; number: in the journal, 0: not durable there
    durable: it outlives its connection, so it must outlive the broker; timer: of the registry
    is_moving: the connection of its client is on its way from the leader before
    published, delivered: messages; published = delivered + pending + those of `DropCounters`"""

    __slots__ = (
        "asked", "author", "client_id", "delivered", "durable", "ended", "expires_at", "expiry_seconds", "guarded",
        "holder", "is_moving", "key", "link", "missed", "number", "owner", "personal", "published", "publishers",
        "qos2_open", "shape", "subscriber", "timer", "version", "will", "will_at", "window",
    )  # fmt: skip

    def __init__(self, client_id: str, shape: Hashable, *, personal: bool, owner: Owner | None = ANYBODY) -> None:
        """owner: None where it is unknown; the first owner who connects with the client id gets the session"""
        self.client_id = client_id
        self.owner = owner
        self.key = key_of(client_id, owner)
        self.shape, self.personal = shape, personal
        self.subscriber: Subscriber = NOT_SUBSCRIBED
        self.asked = NO_FILTERS
        self.holder: str | None = None
        self.window: Window | None = None
        self.qos2_open: bytearray | None = None
        self.publishers: list[int] | None = None
        self.version = 5
        self.expiry_seconds = 0
        self.timer: Deadline | None = None
        self.expires_at: float | None = None
        self.will: Will | None = None
        self.author: Author | None = None
        self.will_at: float | None = None
        self.link: SessionConnection | None = None
        self.published = self.delivered = 0
        self.missed: tuple[dict[str, Any], ...] = ()
        self.ended = False
        self.guarded = False
        self.is_moving = False
        self.number = 0
        self.durable = False

    @property
    def raises_qos(self) -> bool:
        """Whether its client is sent messages of QoS 1 as QoS 2: a bridge to a rumq broker."""
        return bool(getattr(self.shape, "raises_qos", False))

    @property
    def has_subscriber(self) -> bool:
        """Whether the router may know of it."""
        return self.subscriber is not NOT_SUBSCRIBED

    def own_subscriber(self) -> Subscriber:
        """`subscriber`, made if it never subscribed."""
        if not self.has_subscriber:
            self.subscriber = Subscriber(self.key, self.shape, personal=self.personal)
        return self.subscriber

    def reshape(self, shape: Hashable, personal: bool) -> None:
        """Its client connects: its messages are encoded so from now on."""
        if (self.shape, self.personal) != (shape, personal):
            self.shape, self.personal = shape, personal
            if self.has_subscriber:
                subscriber = self.subscriber
                subscriber.shape, subscriber.personal = shape, personal
                subscriber.shape_changed = True

    def own_filters(self) -> SubscribedFilters:
        """Its filters, to be added to; sessions without any share `NO_FILTERS`."""
        if self.asked is NO_FILTERS:
            self.asked = SubscribedFilters()
        return self.asked

    def own_publishers(self, partitions: int) -> list[int]:
        """`publishers`, made for the first message."""
        if self.publishers is None:
            self.publishers = [0] * partitions
        return self.publishers

    def open_window(self, limit: int) -> Window:
        """The in-flight window, made if there is none. limit: how many messages may be in flight"""
        if self.window is None:
            self.window = Window(limit)
            if self.link is not None:
                self.link.wire.window = self.window
        return self.window

    def assign_owner(self, owner: Owner) -> None:
        """Give an owner to a session that had none. No client is connected with it."""
        self.owner, self.key = owner, key_of(self.client_id, owner)
        if not self.has_subscriber:
            return
        subscriber = self.subscriber
        subscriber.key = self.key
        subscriber.shape_changed = True  # its groups know it by the key
        for reader in subscriber.readers():
            reader.key = self.key

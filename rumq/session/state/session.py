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


class Absence:
    """What is of use only once the client of a session is away: most sessions end with their connections, and leave
    nothing. The fields are described at those of the session."""

    __slots__ = ("author", "expires_at", "holder", "missed", "timer", "will", "will_at")

    def __init__(self) -> None:
        self.holder: str | None = None
        self.timer: Deadline | None = None
        self.expires_at: float | None = None
        self.will: Will | None = None
        self.author: Author | None = None
        self.will_at: float | None = None
        self.missed: tuple[dict[str, Any], ...] = ()


class Session:
    """asked: filters as the client wrote them

    shape, personal: of its `subscriber`, which is `NOT_SUBSCRIBED` before its first subscription
    publishers: number of this client in each partition, 0: none yet; None before its first message
    guarded: its subscriptions may bring less than they match; number: in the journal, 0: not durable there
    durable: it outlives its connection, so it must outlive the broker
    is_moving: the connection of its client is on its way from the leader before
    published, delivered: messages; published = delivered + pending + those of `DropCounters`"""

    __slots__ = (
        "_absence", "asked", "client_id", "delivered", "durable", "ended", "expiry_seconds", "guarded",
        "is_moving", "key", "link", "number", "owner", "personal", "published", "publishers",
        "qos2_open", "shape", "subscriber", "version", "window",
    )  # fmt: skip

    def __init__(self, client_id: str, shape: Hashable, *, personal: bool, owner: Owner | None = ANYBODY) -> None:
        """owner: None where it is unknown; the first owner who connects with the client id gets the session"""
        self.client_id = client_id
        self.owner = owner
        self.key = key_of(client_id, owner)
        self.shape, self.personal = shape, personal
        self.subscriber: Subscriber = NOT_SUBSCRIBED
        self.asked = NO_FILTERS
        self._absence: Absence | None = None  # None: all its fields have the values that they begin with
        self.window: Window | None = None
        self.qos2_open: bytearray | None = None
        self.publishers: list[int] | None = None
        self.version = 5
        self.expiry_seconds = 0
        self.link: SessionConnection | None = None
        self.published = self.delivered = 0
        self.ended = False
        self.guarded = False
        self.is_moving = False
        self.number = 0
        self.durable = False

    @property
    def holder(self) -> str | None:
        """Of `PersistentSessions`, once it outlives its connection."""
        return None if self._absence is None else self._absence.holder

    @holder.setter
    def holder(self, value: str | None) -> None:
        if self._absence is not None or value is not None:
            self._own_absence().holder = value

    @property
    def timer(self) -> Deadline | None:
        """Of the registry."""
        return None if self._absence is None else self._absence.timer

    @timer.setter
    def timer(self, value: Deadline | None) -> None:
        if self._absence is not None or value is not None:
            self._own_absence().timer = value

    @property
    def expires_at(self) -> float | None:
        """Monotonic seconds; None: connected, or never."""
        return None if self._absence is None else self._absence.expires_at

    @expires_at.setter
    def expires_at(self, value: float | None) -> None:
        if self._absence is not None or value is not None:
            self._own_absence().expires_at = value

    @property
    def will(self) -> Will | None:
        """To be published when its connection ends without DISCONNECT."""
        return None if self._absence is None else self._absence.will

    @will.setter
    def will(self, value: Will | None) -> None:
        if self._absence is not None or value is not None:
            self._own_absence().will = value

    @property
    def author(self) -> Author | None:
        """Of the will."""
        return None if self._absence is None else self._absence.author

    @author.setter
    def author(self, value: Author | None) -> None:
        if self._absence is not None or value is not None:
            self._own_absence().author = value

    @property
    def will_at(self) -> float | None:
        """Monotonic seconds, while the delay of the will passes."""
        return None if self._absence is None else self._absence.will_at

    @will_at.setter
    def will_at(self, value: float | None) -> None:
        if self._absence is not None or value is not None:
            self._own_absence().will_at = value

    @property
    def missed(self) -> tuple[dict[str, Any], ...]:
        """Ranges that it lost while it was away: `rumq.shards.delivery.lost_ranges`."""
        return () if self._absence is None else self._absence.missed

    @missed.setter
    def missed(self, value: tuple[dict[str, Any], ...]) -> None:
        if self._absence is not None or value:
            self._own_absence().missed = value

    def _own_absence(self) -> Absence:
        if self._absence is None:
            self._absence = Absence()
        return self._absence

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

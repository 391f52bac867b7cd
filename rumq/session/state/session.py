"""What of a client outlives its connection. MQTT 5.0, 4.1.

A session is its subscriptions and cursors (kept by the router as a `Subscriber`), what is in flight to the client
(`Window`), and the inbound QoS 2 packet ids that wait for PUBREL. Knows no socket, no packet."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, NamedTuple

from router.subscriber import Subscriber
from rumq.mqtt.kernels.window import Window
from rumq.mqtt.packets import Will
from rumq.session.state.session_owner import ANYBODY, Owner, key_of
from rumq.session.state.subscribed_filters import SubscribedFilters

if TYPE_CHECKING:
    from rumq.session.journal.entries import Author
    from rumq.session.protocol.connected import Link


class Shape(NamedTuple):
    """What of a client shapes the bytes it gets. packet_max, alias_max: 0 for none."""

    version: int
    packet_max: int
    alias_max: int


class Session:
    __slots__ = (
        "asked", "author", "client_id", "counts", "durable", "ended", "expires_at", "expiry_seconds", "guarded",
        "holder", "key", "link", "missed", "number", "owner", "publishers", "qos2_open", "subscriber", "timer",
        "version", "will", "will_at", "window",
    )  # fmt: skip

    def __init__(
        self, client_id: str, shape: Hashable, *, personal: bool, owner: Owner | None = ANYBODY
    ) -> None:
        """owner: None where nobody knows any more; it is the first one's who comes with the client id"""
        self.client_id = client_id
        self.owner = owner
        self.key = key_of(client_id, owner)
        self.subscriber = Subscriber(self.key, shape, personal=personal)
        self.asked = SubscribedFilters()  # as the client wrote them
        self.holder: str | None = None  # who it counts for, once it outlives its connection
        self.window: Window | None = None
        self.qos2_open: bytearray | None = None
        self.publishers: list[int] | None = None  # number of this client in each partition, 0: none yet
        self.version = 5
        self.expiry_seconds = 0
        self.timer: list[Any] | None = None  # of the registry
        self.expires_at: float | None = None  # monotonic seconds; None while connected
        self.will: Will | None = None
        self.author: Author | None = None  # of the will
        self.will_at: float | None = None
        self.link: Link | None = None
        self.counts = Counts()
        self.missed: list[
            dict[str, Any]
        ] = []  # what it lost while it was away: `rumq.shards.delivery.lost_ranges`
        self.ended = False
        self.guarded = False  # its subscriptions may bring less than they match
        self.number = 0  # by which the journal knows it; 0: it does not
        self.durable = False  # it outlives its connection, so it must outlive the broker

    def belong_to(self, owner: Owner) -> None:
        """Have an owner, of a session that had none. Nobody is connected with it."""
        subscriber = self.subscriber
        self.owner, self.key = owner, key_of(self.client_id, owner)
        subscriber.key = self.key
        subscriber.reshape = True  # its groups know it by the key
        for reader in subscriber.readers():
            reader.key = self.key


class Counts:
    """What a session has had, for the ledger: published = delivered + pending + counted by reason."""

    __slots__ = ("delivered", "published")

    def __init__(self) -> None:
        self.published = 0
        self.delivered = 0

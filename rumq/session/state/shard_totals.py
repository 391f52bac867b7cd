"""Totals of one shard since its start. Connections add their own counts now and then, and when they end."""
# compiled: warm

from __future__ import annotations

from typing import Protocol

from rumq.mqtt.kernels.wire_state import Wire
from rumq.session.flow_control.delivery_window import DeliveryWindow


class CountedSession(Protocol):
    """A session: the messages of all its connections."""

    published: int
    delivered: int


class ShardTotals:
    """published, delivered: PUBLISH packets in and out; packets_in, packets_out: of every kind; connections: CONNECTs
    that were accepted; sockets: accepted sockets; published_bytes: as stored in the log;
    handed_over, taken_over: messages for partitions of other shards, and from other shards for this one's"""

    __slots__ = (
        "bytes_in", "bytes_out", "connections", "delivered", "handed_over", "packets_in", "packets_out", "published",
        "published_bytes", "sockets", "taken_over",
    )  # fmt: skip

    def __init__(self) -> None:
        self.bytes_in = self.bytes_out = 0
        self.packets_in = self.packets_out = 0
        self.published = self.delivered = 0
        self.published_bytes = 0
        self.handed_over = self.taken_over = 0
        self.connections = self.sockets = 0

    def add(self, wire: Wire, flow: DeliveryWindow, counts: CountedSession) -> None:
        """Move what a connection has counted to its session's counts and to these totals."""
        published, delivered = wire.published, flow.delivered
        counts.published += published
        counts.delivered += delivered
        self.published += published
        self.delivered += delivered
        self.packets_in += published + wire.others
        self.packets_out += delivered + wire.answers
        wire.published = wire.others = wire.answers = flow.delivered = 0

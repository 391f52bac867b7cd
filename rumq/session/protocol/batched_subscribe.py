"""A SUBSCRIBE or an UNSUBSCRIBE of many filters, served a piece in each turn: one packet may have a million.

All of it is looked at before the first filter is served: a packet that ends its connection has done nothing. What its
first filters bring may go out before the SUBACK, which waits for the last one (MQTT 5.0, 3.8.4 permits it)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from rumq.mqtt import packets as p
from rumq.mqtt.decode import filter_list
from rumq.mqtt.encode import encode
from rumq.mqtt.packet_types import PacketType
from rumq.mqtt.reasons import Reason
from rumq.session.protocol import subscribe

if TYPE_CHECKING:
    from rumq.session.protocol.connected import Link

SHORT_BYTES = 512  # a packet of no more is served at once
LISTS = (PacketType.SUBSCRIBE, PacketType.UNSUBSCRIBE)


class BatchedRequest:
    """One such packet. Its client is heard again when all of it is served."""

    def __init__(self, link: Link, first_byte: int, body: bytes) -> None:
        """raises: MqttFault"""
        self._link = link
        self._asked = filter_list(first_byte, body, link.version)
        self._unchecked = filter_list(first_byte, body, link.version)
        self._granting: subscribe.Granting | None = None
        if self._asked.packet_type is PacketType.SUBSCRIBE:
            self._granting = subscribe.Granting(link, self._asked.properties)
        self._reasons: list[Reason] = []

    def begin(self) -> None:
        self._link.pause()
        self._link.next_turn(self._check)

    def _check(self) -> None:
        """Look at the next filters."""
        link, unchecked = self._link, self._unchecked
        if self._granting is not None:
            subscribe.check(link, unchecked.subscriptions(subscribe.CHECKS_A_TURN))
        else:
            unchecked.filters(subscribe.CHECKS_A_TURN)
        link.next_turn(self._check if unchecked else self._piece)

    def _piece(self) -> None:
        link, granting = self._link, self._granting
        if granting is None:
            taken = self._asked.filters(subscribe.FILTERS_A_TURN)
            self._reasons += subscribe.take_away(link, taken)
            self._next()
            return
        filters = self._asked.subscriptions(subscribe.FILTERS_A_TURN)
        grant = partial(link.alone, partial(self._grant, granting, filters))
        publishers = subscribe.asks_publisher(link, self._asked.properties)
        if link.house.confirm(subscribe.wanted(link, filters), grant, publishers=publishers):
            grant()

    def _grant(self, granting: subscribe.Granting, filters: tuple[p.Subscription, ...]) -> None:
        """Every shard sends what these filters match."""
        granting.take(filters)
        granting.tell()
        self._next()

    def _next(self) -> None:
        if self._asked:
            self._link.next_turn(self._piece)
        else:
            self._link.go_on(self._answer)

    def _answer(self) -> None:
        link, packet_id = self._link, self._asked.packet_id
        if self._granting is not None:
            subscribe.suback(link, packet_id, self._granting)
        else:
            link.promise(encode(p.Unsuback(packet_id, tuple(self._reasons)), link.version), barrier=False)

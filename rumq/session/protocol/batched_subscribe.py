"""A SUBSCRIBE or an UNSUBSCRIBE of many filters, served a piece in each turn: one packet may have a million.

All of it is looked at before the first filter is served: a packet that ends its connection has done nothing. What its
first filters bring may go out before the SUBACK, which waits for the last one (MQTT 5.0, 3.8.4 permits it)."""
# compiled: warm

from __future__ import annotations

from functools import partial

from rumq.mqtt import packets as p
from rumq.mqtt.decode import filter_list
from rumq.mqtt.packet_types import PacketType
from rumq.mqtt.reasons import Reason
from rumq.session.connection.client_state import RequestResponder, run_confined
from rumq.session.protocol import subscribe

SHORT_BYTES = 160  # a packet of no more is served at once
LISTS = (PacketType.SUBSCRIBE, PacketType.UNSUBSCRIBE)


class BatchedRequest:
    """One such packet. Its client is heard again when all of it is served."""

    def __init__(self, responder: RequestResponder, first_byte: int, body: bytes) -> None:
        """raises: MqttFault"""
        self._responder, self._client = responder, responder.client
        self._asked = filter_list(first_byte, body, self._client.version)
        self._unchecked = filter_list(first_byte, body, self._client.version)
        self._granting: subscribe.Granting | None = None
        if self._asked.packet_type is PacketType.SUBSCRIBE:
            self._granting = subscribe.Granting(self._client, self._asked.properties)
        self._reasons: list[Reason] = []

    def begin(self) -> None:
        self._responder.pause()
        self._responder.next_turn(self._check)

    def _check(self) -> None:
        """Look at the next filters."""
        client, unchecked = self._client, self._unchecked
        if self._granting is not None:
            subscribe.check(client, unchecked.subscriptions(subscribe.CHECKS_A_TURN))
        else:
            unchecked.filters(subscribe.CHECKS_A_TURN)
        self._responder.next_turn(self._check if unchecked else self._piece)

    def _piece(self) -> None:
        client, granting = self._client, self._granting
        if granting is None:
            self._reasons += subscribe.remove(client, self._asked.filters(subscribe.FILTERS_A_TURN))
            self._next()
            return
        filters = self._asked.subscriptions(subscribe.FILTERS_A_TURN)
        grant = partial(run_confined, self._responder, partial(self._grant, granting, filters))
        publishers = subscribe.asks_publisher(client, self._asked.properties)
        if client.broker.delivery.confirm(subscribe.wanted(client, filters), grant, publishers=publishers):
            grant()

    def _grant(self, granting: subscribe.Granting, filters: tuple[p.SubscriptionRequest, ...]) -> None:
        """Every shard sends what these filters match."""
        self._responder.ensure_active()
        granting.grant(filters)
        granting.apply()
        self._next()

    def _next(self) -> None:
        if self._asked:
            self._responder.next_turn(self._piece)
        else:
            self._responder.resume(self._answer)

    def _answer(self) -> None:
        packet_id = self._asked.packet_id
        if self._granting is not None:
            subscribe.suback(self._responder, packet_id, self._granting)
        else:
            subscribe.unsuback(self._responder, packet_id, self._reasons)

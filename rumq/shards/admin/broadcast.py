"""One message to connected clients by order of an operator: at QoS 0, past the log, some sessions a turn.

A client gets it that the order names by its client id, and that subscribes to the topic by a filter of its own, within
the rules that hold for it; MQTT 5.0, 3.3.2.1 lets a server send nothing else. Filters of shared groups do not count. A
client that does not read, or takes no packet of this size, is passed over."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from fnmatch import fnmatchcase

from router.readers.subscription import Subscription
from rumq.admin import requests as q
from rumq.loop.ports import EventSink, Timers
from rumq.mqtt.encode import encode
from rumq.mqtt.errors import TopicNameInvalid
from rumq.mqtt.packets import Publish
from rumq.mqtt.properties import Properties
from rumq.mqtt.topics import check_topic_name, matches
from rumq.session.protocol.connected import Connected
from rumq.session.state.registry import Registry
from rumq.session.state.session import Session
from rumq.shards.admin.listings.listings import Done, Later
from rumq.shards.admin.queries.client_detail import subscriptions_in

SESSIONS_A_TURN = 128
SHARED = "shared"


class BroadcastAction:
    def __init__(self, registry: Registry, timers: Timers, events: EventSink) -> None:
        self._registry, self._timers, self._events = registry, timers, events

    def send(self, asked: q.Broadcast) -> Later:
        """raises: ValueError for a topic or a payload that is none"""
        round_ = BroadcastRound(asked)

        def answer(done: Done) -> None:
            left = list(self._registry.sessions.values())

            def go_on() -> None:
                some = left[-SESSIONS_A_TURN:]
                del left[-SESSIONS_A_TURN:]
                for session in some:
                    round_.send_to(session)
                if left:
                    self._timers.next_turn(go_on)
                    return
                if round_.named:
                    self._events.tell(
                        "message.broadcast", clients=asked.clients, named=round_.named, sent=round_.sent,
                        dropped=round_.dropped,
                    )  # fmt: skip
                done({"named": round_.named, "sent": round_.sent, "dropped": round_.dropped})

            go_on()

        return answer


class BroadcastRound:
    """One message on its way. named: clients that are connected and named; sent, dropped: of them, as subscribers"""

    def __init__(self, asked: q.Broadcast) -> None:
        """raises: ValueError"""
        try:
            check_topic_name(asked.topic)
        except TopicNameInvalid as fault:
            raise ValueError(str(fault)) from None
        self._clients, self._topic = asked.clients, asked.topic
        self._payload = payload_of(asked)
        self._properties = Properties()
        if asked.content_type:
            self._properties["content_type"] = asked.content_type
        if asked.expiry_seconds:
            self._properties["message_expiry_interval"] = asked.expiry_seconds
        self._packets: dict[tuple[int, str, tuple[int, ...]], bytes] = {}
        self.named = self.sent = self.dropped = 0

    def send_to(self, session: Session) -> None:
        link = session.link
        if not isinstance(link, Connected) or link.client.closed or not fnmatchcase(session.client_id, self._clients):
            return
        self.named += 1
        found = list(matching(session, self._topic))
        if not found:
            return
        packet = self._packet(link, tuple(sorted({each.identifier for each in found if each.identifier})))
        bytes_max = link.client.packet_bytes_max
        takes = not link.deliveries.connack_pending and not (bytes_max and len(packet) > bytes_max)
        if not takes or link.transport.room <= 0:
            self.dropped += 1
            return
        link.transport.write(packet)
        link.flow.delivered += 1
        self.sent += 1

    def _packet(self, link: Connected, identifiers: tuple[int, ...]) -> bytes:
        """The bytes for a client; those with equal ones share them."""
        topic = self._topic.removeprefix(link.client.policy.mount_point)
        key = link.client.version, topic, identifiers
        if key not in self._packets:
            properties = self._properties.copy()
            if identifiers:
                properties["subscription_identifiers"] = list(identifiers)
            packet = Publish(topic, self._payload, 0, False, False, None, properties)
            self._packets[key] = encode(packet, link.client.version)
        return self._packets[key]


def matching(session: Session, topic: str) -> Iterator[Subscription]:
    """The session's own subscriptions that a topic matches and its rules let through."""
    for kind, _, subscription in subscriptions_in(session.subscriber):
        if kind != SHARED and matches(subscription.topic_filter, topic) and subscription.covers(topic):
            yield subscription


def payload_of(asked: q.Broadcast) -> bytes:
    """raises: ValueError"""
    if asked.encoding == "utf-8":
        return asked.payload.encode()
    try:
        return base64.b64decode(asked.payload, validate=True)
    except binascii.Error:
        raise ValueError("payload is no base64, which encoding says that it is") from None

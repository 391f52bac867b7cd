"""PUBLISH where the kernel needs help: topics that are new, full tables, and messages that are refused.

MQTT 5.0, 3.3.4; new topics: docs/guides/security.md, "Quotas"."""

from __future__ import annotations

from rumq.mqtt import packets as p
from rumq.mqtt.decode import decode
from rumq.mqtt.errors import MqttFault
from rumq.mqtt.frames import frame_at
from rumq.mqtt.kernels import ingest
from rumq.mqtt.kernels.ingest import cut
from rumq.mqtt.kernels.wire_state import Wire
from rumq.mqtt.reasons import Reason
from rumq.mqtt.topics import check_topic_name
from rumq.session.connection.broker_port import PublishRefusal
from rumq.session.connection.client_state import Client, RequestResponder
from rumq.session.protocol import authorization, topic_refusals
from rumq.session.protocol.reason_strings import explained


def accept_topic(client: Client, name: bytes) -> bool:
    """Whether messages to a topic that is new to the client are taken; then its number is known.

    raises: MqttFault, TopicWaits"""
    try:
        text = name.decode()
    except UnicodeDecodeError:
        raise MqttFault("a PUBLISH topic that is no UTF-8", Reason.MALFORMED_PACKET) from None
    check_topic_name(text)
    is_own = client.is_own
    if topic_refusals.of_name(text, client.limits, client.policy.mount_point, is_own=is_own) is not None:
        return False
    if client.permit is not None and not client.permit.may("publish", text):
        return False
    if client.broker.publishing.topics_with(name).get(name) is None and not create_topic(client, name):
        return False
    if client.permit is not None or is_own:
        authorization.allow_topic(client, name, text)
    return True


class TopicWaits(Exception):
    """A topic is not created yet. seconds: until its publisher may try again; 0.0: until the next turn"""

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self.seconds = seconds


def create_topic(client: Client, name: bytes) -> bool:
    """Number a topic that nobody has published to, if there is room for it and its publisher may create one.

    raises: TopicWaits"""
    quotas = client.policy.quotas
    if not quotas.may_add_topic(client.user):
        return False
    wait = client.broker.publishing.match_topic(client, name)
    if wait is not None:
        raise TopicWaits(wait)
    if not client.broker.publishing.add_topic(name):
        return False
    quotas.added_topic(client.user)
    return True


def publish_one(responder: RequestResponder, wire: Wire, data: bytearray, pos: int, end: int) -> int:
    """Take or refuse one PUBLISH to a topic that not every message may go to. returns: where it ends"""
    client, name = responder.client, wire.topic
    found = frame_at(data, pos, end)
    assert found is not None
    stop = pos + found[0] + found[1]
    packet = decode(data[pos], bytes(data[pos + found[0] : stop]), client.version)
    assert isinstance(packet, p.Publish)
    topic = name.decode()
    refusal = topic_refusals.of_name(topic, client.limits, client.policy.mount_point, is_own=client.is_own)
    may_publish = refusal is None and authorization.may_publish(client, packet, topic)
    topics = client.broker.publishing.topics_with(name)
    if client.permit is not None and may_publish and topics.get(name) is not None:
        while (pos := cut(wire, client.broker.publishing.batches, data, pos, stop, topics)) < stop:
            if wire.stop != ingest.UNDECIDED:
                supply(client, wire)
            elif not client.broker.publishing.undecided.takes_publish(responder, is_again=packet.dup):
                break
        wire.forget_topics()
        return pos
    wire.others += 1
    keep_alias(wire, packet, name)
    if refusal is not None:
        if authorization.is_reported(client):
            client.broker.event("publish.refused", client, topic=topic, why=refusal.why, refused=client.refusals)
    elif may_publish:
        quotas = client.policy.quotas
        user_topics_max = None if quotas.may_add_topic(client.user) else quotas.topics_max
        why = client.broker.publishing.refuse_topic(name, client, user_topics_max)
        refusal = PublishRefusal(Reason.QUOTA_EXCEEDED, why)
    else:
        retain_only = client.permit is not None and client.permit.may("publish", topic)
        authorization.report(client, "retain" if retain_only else "publish", topic)
        refusal = PublishRefusal(Reason.NOT_AUTHORIZED, "this client may not publish here", True)
    refuse(client, packet, refusal)
    return stop


def refuse(client: Client, packet: p.Publish, refusal: PublishRefusal) -> None:
    """Answer a PUBLISH that is not taken: nobody gets it. MQTT 5.0, 3.3.4.

    raises: MqttFault where only an end tells the client that its message was not taken (3.1.1, 3.3.5)"""
    if not packet.qos:
        return
    if client.version != 5 and not refusal.acknowledged:
        raise MqttFault(refusal.why, refusal.reason)
    assert packet.packet_id is not None and client.wire is not None
    kind = p.Puback if packet.qos == 1 else p.Pubrec
    reason = refusal.reason if client.version == 5 else Reason.SUCCESS
    client.wire.answer(explained(client, kind(packet.packet_id, reason), refusal.why))
    client.wire.answers += 1


def keep_alias(wire: Wire, packet: p.Publish, name: bytes) -> None:
    """An alias that a refused PUBLISH defines stands for its topic all the same."""
    alias = packet.properties.get("topic_alias")
    if alias is not None:
        if wire.aliases is None:
            wire.aliases = [None] * (wire.alias_max + 1)
        wire.aliases[alias] = name


def supply(client: Client, wire: Wire) -> None:
    """Give the kernel what it stopped for. raises: MqttFault where that was a fault"""
    stop, broker, session = wire.stop, client.broker, client.session
    if stop == ingest.PUBLISHER:
        assert session is not None
        if wire.publishers is None:
            wire.publishers = session.own_publishers(len(broker.publishing.batches))
        if not wire.publishers[wire.partition]:  # its will may have given it one
            wire.publishers[wire.partition] = broker.publishing.publisher_number(wire.partition, session.client_id)
    elif stop == ingest.FULL:
        broker.publishing.batches[wire.partition].grow(wire.frame_bytes)
    else:
        raise MqttFault(wire.fault_text, Reason(wire.fault))

"""What of a PUBLISH the kernel leaves to Python: topics that are new, or not for this client; room in its tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rumq.mqtt import packets as p
from rumq.mqtt.decode import decode
from rumq.mqtt.errors import MqttFault
from rumq.mqtt.frames import frame_at
from rumq.mqtt.kernels import ingest
from rumq.mqtt.kernels.ingest import cut
from rumq.mqtt.kernels.wire_state import Wire
from rumq.mqtt.reasons import Reason
from rumq.mqtt.topics import check_topic_name
from rumq.session.protocol import authorization, topic_refusals
from rumq.session.protocol.topic_creation import new_topic

if TYPE_CHECKING:
    from rumq.session.protocol.connected import Link


def meet_topic(link: Link, name: bytes) -> bool:
    """Whether messages to a topic that is new here may be taken; then its number is known. raises: MqttFault"""
    try:
        text = name.decode()
    except UnicodeDecodeError:
        raise MqttFault("a PUBLISH topic that is no UTF-8", Reason.MALFORMED_PACKET) from None
    check_topic_name(text)
    if topic_refusals.of_name(text, link.limits, link.entrance.mount_point) is not None:
        return False
    if link.permit is not None:
        return authorization.meet_topic(link, name, text)
    return new_topic(link, name)


def take_or_refuse(link: Link, wire: Wire, data: Any, pos: int, end: int) -> int:
    """Take or pass over one PUBLISH to a topic that is not for all: not permitted, or there is no room for it.

    returns: where it ends"""
    name = wire.topic
    found = frame_at(data, pos, end)
    assert found is not None
    head, body = found
    packet = decode(data[pos], bytes(data[pos + head : pos + head + body]), link.version)
    assert isinstance(packet, p.Publish)
    text = name.decode()
    refusal = topic_refusals.of_name(text, link.limits, link.entrance.mount_point)
    may_publish = refusal is None and authorization.may_publish(link, packet, text)
    if link.permit is not None and may_publish and link.house.topics.get(name) is not None:
        return take_one(link, wire, data, pos, pos + head + body)
    wire.others += 1
    keep_alias(wire, packet, name)
    if refusal is not None:
        refuse_name(link, packet, text, refusal)
    elif may_publish:
        link.house.refuse_topic(link, name, packet)
    else:
        authorization.refuse_publish(link, packet, text)
    return pos + head + body


def refuse_name(link: Link, packet: p.Publish, topic: str, refusal: topic_refusals.Refusal) -> None:
    """Answer a PUBLISH to a topic that nobody may publish to, and count it. raises: MqttFault where only an end tells
    the client that its message was not taken"""
    if authorization.is_to_be_told(link):
        link.house.event("publish.refused", link, topic=topic, why=refusal.why, refused=link.forbidden)
    if not packet.qos:
        return
    if link.version != 5 and not refusal.acknowledged:
        raise MqttFault(refusal.why, refusal.reason)
    authorization.answer_refused(link, packet, refusal.reason, refusal.why)


def take_one(link: Link, wire: Wire, data: Any, pos: int, stop: int) -> int:
    """Take one PUBLISH to a topic that this client may not do everything with."""
    house = link.house
    while (taken := cut(wire, house.batches, data, pos, stop, house.topics)) < stop:
        provide(link, wire)
    wire.forget_topics()
    return taken


def keep_alias(wire: Wire, packet: p.Publish, name: bytes) -> None:
    """An alias that a refused PUBLISH defines stands for its topic all the same."""
    alias = packet.properties.get("topic_alias")
    if alias is not None:
        if wire.aliases is None:
            wire.aliases = [None] * (wire.alias_max + 1)
        wire.aliases[alias] = name


def provide(link: Link, wire: Wire) -> None:
    """Give the kernel what it stopped for. raises: MqttFault where that was a fault"""
    stop, house, session = wire.stop, link.house, link.session
    if stop == ingest.PUBLISHER:
        assert session is not None and session.publishers is not None
        session.publishers[wire.partition] = house.publisher_number(wire.partition, session.client_id)
    elif stop == ingest.FULL:
        house.batches[wire.partition].grow(wire.frame_bytes)
    else:
        raise MqttFault(wire.fault_text, Reason(wire.fault))

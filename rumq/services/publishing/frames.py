"""A message of a caller as a PUBLISH packet of MQTT 5, QoS 1: bytes before and behind the packet identifier.

MQTT 5.0, 3.3. What MQTT cannot express is refused here, so that no message breaks the connection of its user."""

from __future__ import annotations

from typing import NamedTuple

from rumq.mqtt.errors import TopicNameInvalid
from rumq.mqtt.topics import check_topic_name
from rumq.services.contract.faults import CallFault
from rumq.services.generated.broker_service_pb2 import Message

QOS_1, RETAIN = 0x32, 0x01
EXPIRY, CONTENT_TYPE, RESPONSE_TOPIC, CORRELATION, USER = 2, 3, 8, 9, 38
TEXT_BYTES_MAX = 0xFFFF
NO_PROPERTIES = b"\0"
PACKET_ID_BYTES = 2
OVERHEAD = 64  # of a message that waits, besides its bytes


class OutgoingPublish(NamedTuple):
    """A PUBLISH: head, packet identifier, tail. topic: in UTF-8"""

    topic: bytes
    head: bytes
    tail: bytes

    @property
    def size(self) -> int:
        return len(self.head) + PACKET_ID_BYTES + len(self.tail)


def outgoing(message: Message, packet_bytes_max: int) -> OutgoingPublish:
    """raises: CallFault for what MQTT does not allow, or the broker does not take"""
    topic = topic_of(message.topic)
    tail = properties_of(message) + message.payload
    length = 2 + len(topic) + PACKET_ID_BYTES + len(tail)
    head = bytes((QOS_1 | message.retain,)) + varint(length) + len(topic).to_bytes(2, "big") + topic
    if len(head) + PACKET_ID_BYTES + len(tail) > packet_bytes_max:
        size = len(head) + PACKET_ID_BYTES + len(tail)
        raise CallFault(
            "MESSAGE_TOO_LARGE",
            f"the message takes {size} bytes, and the broker takes {packet_bytes_max} (mqtt.packet_bytes_max)",
            bytes=size, limit=packet_bytes_max,
        )  # fmt: skip
    return OutgoingPublish(topic, head, tail)


def topic_of(topic: str) -> bytes:
    """raises: CallFault"""
    # What most topics are is seen in one look.
    if not (0 < len(topic) < 16_000 and topic.isascii() and topic.isprintable()) or "#" in topic or "+" in topic:
        try:
            check_topic_name(topic)
        except TopicNameInvalid as fault:
            raise CallFault("TOPIC_INVALID", str(fault)) from None
    return topic.encode()


def properties_of(message: Message) -> bytes:
    """With their length. raises: CallFault"""
    found = b""
    if message.expiry_seconds:
        found += bytes((EXPIRY,)) + message.expiry_seconds.to_bytes(4, "big")
    if message.content_type:
        found += bytes((CONTENT_TYPE,)) + text_of("content_type", message.content_type)
    if message.response_topic:
        found += bytes((RESPONSE_TOPIC,)) + sized("response_topic", topic_of(message.response_topic))
    if message.correlation_data:
        found += bytes((CORRELATION,)) + sized("correlation_data", message.correlation_data)
    if message.user_properties:
        found += b"".join(
            bytes((USER,)) + text_of("user_properties", each.name) + text_of("user_properties", each.value)
            for each in message.user_properties
        )
    return varint(len(found)) + found if found else NO_PROPERTIES


def text_of(field: str, text: str) -> bytes:
    """MQTT 5.0, 1.5.4. raises: CallFault"""
    if "\0" in text:
        raise CallFault("ARGUMENT_INVALID", f"message.{field} has the character U+0000, which MQTT does not allow")
    return sized(field, text.encode())


def sized(field: str, data: bytes) -> bytes:
    if len(data) > TEXT_BYTES_MAX:
        raise CallFault("ARGUMENT_INVALID", f"message.{field} has {len(data)} bytes, and MQTT allows {TEXT_BYTES_MAX}")
    return len(data).to_bytes(2, "big") + data


def varint(value: int) -> bytes:
    """A variable byte integer. MQTT 5.0, 1.5.5; more than four bytes are refused by the bound of a packet."""
    if value < 128:
        return bytes((value,))
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    found.append(value)
    return bytes(found)

"""Messages to push, checked one by one, as what is published. docs/reference/queues.md, "Push"

What MQTT cannot express, or the broker would end the connection for, is refused here: one message's fault is no
other's."""
# compiled: warm

from __future__ import annotations

from rumq.client import Outgoing
from rumq.queues.rules.definitions import QueueDefinition
from rumq.queues.rules.errors import BadQueueRequest, shown
from rumq.queues.rules.messages import Push
from rumq.queues.rules.names import check_topic, message_topic
from rumq.queues.rules.packets import DUE, EXPIRY, delayed_topic, properties_of

TEXT_BYTES_MAX = 65_535
KEY_BYTES_MAX = 1024
HEADERS_MAX = 100
FRAME_BYTES = 64  # of a packet beside topic, properties and payload, at most


def checked_topic(push: Push) -> str:
    """raises: BadQueueRequest"""
    return check_topic(push.topic)


def outgoing(queue: QueueDefinition, topic: str, push: Push, now_us: int, packet_bytes_max: int) -> Outgoing:
    """A checked message. raises: BadQueueRequest. topic: as of `checked_topic`; now_us: µs since 1970, for a delay"""
    expiry = queue.ttl_seconds if push.expiry_seconds is None else min(push.expiry_seconds, queue.ttl_seconds)
    name = message_topic(queue.label, topic)
    if push.delay_seconds:
        due = (DUE, str(now_us + round(push.delay_seconds * 1e6)))
        waits = int(push.delay_seconds) + 1 + expiry
        message = Outgoing(
            delayed_topic(name), push.payload, 1, False, properties_of(push, waits, due, (EXPIRY, str(expiry)))
        )
    else:
        message = Outgoing(name, push.payload, 1, False, properties_of(push, expiry))
    size = len(push.payload) + len(message.topic.encode()) + FRAME_BYTES + len(push.content_type.encode())
    size += sum(5 + len(key.encode()) + len(value.encode()) for key, value in push.headers)
    size += len((push.key or "").encode()) + 2 * FRAME_BYTES
    if size > packet_bytes_max:
        raise BadQueueRequest(
            f"the message takes {size} bytes, and the broker takes {packet_bytes_max} (mqtt.packet_bytes_max)"
        )
    return message


def check(push: Push, delay_seconds_max: float) -> None:
    """raises: BadQueueRequest"""
    if not 0 <= push.delay_seconds <= delay_seconds_max:
        raise BadQueueRequest(
            f"delay_seconds {push.delay_seconds:g}: expected 0 to {delay_seconds_max:g} (queues.lasting_seconds_max)"
        )
    if push.expiry_seconds is not None and push.expiry_seconds < 1:
        raise BadQueueRequest(f"expiry_seconds {push.expiry_seconds}: expected at least 1, or none")
    if len(push.headers) > HEADERS_MAX:
        raise BadQueueRequest(f"{len(push.headers)} headers: expected at most {HEADERS_MAX}")
    for name, value in push.headers:
        check_text("header", name)
        check_text(f"header {shown(name)}", value)
    check_text("content type", push.content_type)
    if push.key is not None:
        check_text("key", push.key)
        if len(push.key.encode()) > KEY_BYTES_MAX:
            raise BadQueueRequest(f"key {shown(push.key)}: expected at most {KEY_BYTES_MAX} bytes")


def check_text(what: str, text: str) -> None:
    """raises: BadQueueRequest for what is no UTF-8 string of MQTT 5.0, 1.5.4"""
    if "\0" in text:
        raise BadQueueRequest(f"{what} {shown(text)}: it must not contain NUL")
    if len(text) > TEXT_BYTES_MAX:
        raise BadQueueRequest(f"{what} {shown(text)}: expected at most {TEXT_BYTES_MAX} bytes")
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise BadQueueRequest(f"{what} {shown(text)}: it is no text (a lone surrogate)") from None
    if size > TEXT_BYTES_MAX:
        raise BadQueueRequest(f"{what} {shown(text)}: expected at most {TEXT_BYTES_MAX} bytes")

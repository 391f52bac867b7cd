"""Messages to publish over REST, in JSON or MessagePack, checked: a malformed one would end our connection."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated, Literal

import msgspec

from rumq.admin.units import field, number
from rumq.client.session.messages import Outgoing
from rumq.gateway.contract.problems import Problem
from rumq.gateway.http.media_types import JSON as JSON_TYPE
from rumq.gateway.records.positions import Position
from rumq.mqtt.errors import TopicNameInvalid
from rumq.mqtt.properties import Properties
from rumq.mqtt.topics import check_topic_name

MESSAGES_MAX = 1_000
Text = Annotated[str, msgspec.Meta(max_length=16_384)]


class MessageProperties(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Properties of PUBLISH. MQTT 5.0, 3.3.2.3"""

    expiry_seconds: Annotated[int, number("Message Expiry Interval", "seconds", 0, 2**32 - 1)] | None = None
    content_type: Text | None = None
    response_topic: Text | None = None
    correlation_data: Text | None = None  # base64
    is_text: Annotated[bool, field("Payload Format Indicator: the payload is UTF-8")] = False
    user_properties: Annotated[list[tuple[Text, Text]], msgspec.Meta(max_length=100)] = []


class Message(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A message to publish. QoS 0 is sent without an acknowledgement: whether it was refused is not known."""

    topic: Annotated[str, msgspec.Meta(min_length=1, max_length=65_535, description="a topic name")]
    payload: Annotated[
        msgspec.Raw,
        field("text; base64 as `encoding` says; or any other JSON value, which is published as it is written"),
    ] = msgspec.field(default_factory=lambda: msgspec.Raw(b'""'))
    encoding: Annotated[
        Literal["utf-8", "base64", "json"],
        field("of the payload; json: a text is published with its quotes, too"),
    ] = "utf-8"
    qos: Literal[0, 1, 2] = 1
    retain: bool = False
    properties: MessageProperties | None = None


class BinaryMessage(Message, kw_only=True, forbid_unknown_fields=True):
    """In MessagePack a payload is bytes."""

    payload: bytes = b""  # type: ignore[assignment]


class RefusedMessage(msgspec.Struct, kw_only=True):
    """number: of the message in the batch, from 0"""

    number: int
    reason: Annotated[int, field("MQTT reason code")]
    why: str


class Published(msgspec.Struct, kw_only=True):
    """The broker has acknowledged all that it accepted, as the streams' durability promises."""

    accepted: Annotated[int, field("", "messages")]
    refused: list[RefusedMessage] = []
    positions: Annotated[
        list[Position | None],
        field("of each message; null: refused, or not known: of QoS 0, or not in the log of this node yet"),
    ] = []


class RefusedMessages(Problem, kw_only=True):
    """The other messages are published."""

    accepted: Annotated[int, field("", "messages")]
    refused: list[RefusedMessage]
    positions: list[Position | None]


JSON = msgspec.json.Decoder(Message | list[Message])
MSGPACK = msgspec.msgpack.Decoder(BinaryMessage | list[BinaryMessage])


def decoded(body: bytes, *, is_msgpack: bool) -> list[Outgoing]:
    """The messages of a body: one, or a list of up to 1,000. raises: ValueError"""
    found = MSGPACK.decode(body) if is_msgpack else JSON.decode(body)
    messages: list[Message] = found if isinstance(found, list) else [found]
    if not 1 <= len(messages) <= MESSAGES_MAX:
        raise ValueError(f"a batch has 1 to {MESSAGES_MAX} messages, not {len(messages)}")
    return [outgoing(each) for each in messages]


def outgoing(message: Message) -> Outgoing:
    """raises: ValueError"""
    try:
        check_topic_name(message.topic)
    except TopicNameInvalid as fault:
        raise ValueError(str(fault)) from None
    properties = Properties() if message.properties is None else publish_properties(message.properties)
    if isinstance(message.payload, bytes):
        data = message.payload
    else:
        data, is_json = of_json(bytes(message.payload), message.encoding)
        if is_json:
            properties.setdefault("content_type", JSON_TYPE)
            properties.setdefault("payload_format_indicator", True)
    return Outgoing(message.topic, data, message.qos, message.retain, properties)


def of_json(written: bytes, encoding: str) -> tuple[bytes, bool]:
    """The payload that a JSON value says, and whether it is JSON itself. raises: ValueError"""
    if encoding == "json":
        return written, True
    if written.startswith(b'"'):
        return of_text(msgspec.json.decode(written, type=str), encoding), False
    if encoding == "base64":
        raise ValueError("the payload is no base64: it is no text")
    if written == b"null":
        raise ValueError('the payload is null: give "" for an empty one, or "encoding": "json" for the word')
    return written, True


def of_text(payload: str, encoding: str) -> bytes:
    if encoding == "utf-8":
        return payload.encode()
    try:
        return base64.b64decode(payload, validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("the payload is no base64") from None


def publish_properties(given: MessageProperties) -> Properties:
    """raises: ValueError"""
    found = Properties()
    if given.expiry_seconds is not None:
        found["message_expiry_interval"] = given.expiry_seconds
    if given.is_text:
        found["payload_format_indicator"] = True
    if given.correlation_data is not None:
        found["correlation_data"] = of_text(given.correlation_data, "base64")
    if given.content_type is not None:
        found["content_type"] = checked(given.content_type)
    if given.response_topic is not None:
        try:
            check_topic_name(given.response_topic)
        except TopicNameInvalid as fault:
            raise ValueError(str(fault)) from None
        found["response_topic"] = given.response_topic
    if given.user_properties:
        found["user_properties"] = [(checked(name), checked(value)) for name, value in given.user_properties]
    return found


def checked(text: str) -> str:
    """A string of MQTT. 1.5.4"""
    if "\0" in text:
        raise ValueError("a text of MQTT contains no null character")
    return text

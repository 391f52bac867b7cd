"""Every packet once, by name: its bytes and what they mean. The broken ones are in `broken_packets_table.py`.

Codec, session and client tests share it. Bytes are written out by hand after the standard's figures,
    so that no
code of ours decides what is right; ASCII text stands as bytes.
"""

from typing import NamedTuple

from rumq.mqtt.errors import MqttFault
from rumq.mqtt.packets import (
    Auth,
    Connack,
    Connect,
    Disconnect,
    Packet,
    Pingreq,
    Pingresp,
    Puback,
    Pubcomp,
    Publish,
    Pubrec,
    Pubrel,
    Suback,
    Subscribe,
    SubscriptionRequest,
    Unsuback,
    Unsubscribe,
    Will,
)
from rumq.mqtt.reasons import Reason

Fault = tuple[type[MqttFault], Reason]


class Row(NamedTuple):
    """One packet of `version`. means: the packet, or the fault it is; shortest: how we would write it too."""

    name: str
    version: int
    wire: bytes
    means: Packet | Fault
    shortest: bool = True


def wire(*parts: str | bytes) -> bytes:
    """Hex and text in one: wire("30 03 00 01", b"a")."""
    return b"".join(part if isinstance(part, bytes) else bytes.fromhex(part) for part in parts)


def row(name: str, version: int, *parts: str | bytes, means: Packet | Fault, shortest: bool = True) -> Row:
    return Row(name, version, wire(*parts), means, shortest)


CONNECT = [
    row("connect 3.1", 3, "10 10 00 06", b"MQIsdp", "03 02 00 3C 00 02", b"p7",
        means=Connect("p7", 3, True, 60)),
    row(
        "connect 3.1 with a user name flag and no user name", 3,
        "10 10 00 06", b"MQIsdp", "03 C2 00 3C 00 02", b"p7",
        means=Connect("p7", 3, True, 60), shortest=False,
    ),
    row(
        "connect 3.1 with will flags and no will", 3,
        "10 10 00 06", b"MQIsdp", "03 3A 00 3C 00 02", b"p7",
        means=Connect("p7", 3, True, 60), shortest=False,
    ),
    row(
        "connect 3.1 with fixed header flags", 3,
        "1B 10 00 06", b"MQIsdp", "03 02 00 3C 00 02", b"p7",
        means=Connect("p7", 3, True, 60), shortest=False,
    ),
    row("connect 3.1.1", 4, "10 0E 00 04", b"MQTT", "04 02 00 3C 00 02", b"p7",
        means=Connect("p7", 4, True, 60)),
    row(
        "connect 3.1.1 to go on with a session", 4,
        "10 0E 00 04", b"MQTT", "04 00 FF FF 00 02", b"p7", means=Connect("p7", 4, False, 65535),
    ),
    row("connect 3.1.1 without an id", 4, "10 0C 00 04", b"MQTT", "04 02 00 00 00 00", means=Connect("", 4)),
    row(
        "connect 3.1.1 with all", 4,
        "10 23 00 04", b"MQTT", "04 EE 00 3C 00 02", b"p7",
        "00 06", b"gone/7", "00 03", b"bye", "00 03", b"ann", "00 01 FF",
        means=Connect("p7", 4, True, 60, "ann", b"\xff", Will("gone/7", b"bye", 1, True)),
    ),
    row(
        "connect 3.1.1 with an empty user name, password and will payload", 4,
        "10 17 00 04", b"MQTT", "04 C6 00 00 00 02", b"p7", "00 01", b"g", "00 00 00 00 00 00",
        means=Connect("p7", 4, True, 0, "", b"", Will("g", b"")),
    ),
    row("connect 5", 5, "10 0F 00 04", b"MQTT", "05 02 00 3C 00 00 02", b"p7",
        means=Connect("p7", 5, True, 60)),
    row("connect 5 without an id", 5, "10 0D 00 04", b"MQTT", "05 00 00 00 00 00 00",
        means=Connect("", 5, False)),
    row(
        "connect 5 with a password alone", 5,
        "10 10 00 04", b"MQTT", "05 42 00 00 00 00 00 00 01 00",
        means=Connect("", 5, password=b"\0"),
    ),
    row(
        "connect 5 with all properties", 5,
        "10 39 00 04", b"MQTT", "05 02 00 00 2A",
        "11 FF FF FF FF 21 00 14 27 00 01 00 00 22 00 0A 19 01 17 00 26 00 01", b"a", "00 01", b"b",
        "15 00 02", b"pw", "16 00 02 00 FF", "26 00 00 00 00",
        "00 02", b"p7",
        means=Connect("p7", 5, properties={
            "session_expiry_interval": 0xFFFFFFFF, "receive_maximum": 20, "maximum_packet_size": 65536,
            "topic_alias_maximum": 10, "request_response_information": True,
                "request_problem_information": False,
            "user_properties": [("a", "b"), ("", "")], "authentication_method": "pw",
            "authentication_data": b"\x00\xff",
        }), shortest=False,
    ),
    row(
        "connect 5 with a will", 5,
        "10 37 00 04", b"MQTT", "05 36 00 00 00 00 02", b"p7",
        "1F 18 00 00 00 1E 01 01 02 00 00 00 3C 03 00 01", b"t", "08 00 01", b"r", "09 00 01 FF",
        "26 00 01", b"k", "00 01", b"v", "00 01", b"g", "00 03", b"bye",
        means=Connect("p7", 5, will=Will("g", b"bye", 2, True, {
            "will_delay_interval": 30, "payload_format_indicator": 1, "message_expiry_interval": 60,
            "content_type": "t", "response_topic": "r", "correlation_data": b"\xff",
                "user_properties": [("k", "v")],
        })),
    ),
]  # fmt: skip

CONNACK = [
    row("connack 3.1 with its reserved byte set", 3, "20 02 01 00", means=Connack(), shortest=False),
    row("connack 3.1.1", 4, "20 02 00 00", means=Connack()),
    row("connack 3.1.1 to go on", 4, "20 02 01 00", means=Connack(True)),
    row("connack 3.1.1 bad version", 4, "20 02 00 01",
        means=Connack(False, Reason.UNSUPPORTED_PROTOCOL_VERSION)),
    row("connack 3.1.1 bad id", 4, "20 02 00 02", means=Connack(False, Reason.CLIENT_IDENTIFIER_NOT_VALID)),
    row("connack 3.1.1 unavailable", 4, "20 02 00 03", means=Connack(False, Reason.SERVER_UNAVAILABLE)),
    row("connack 3.1.1 bad password", 4, "20 02 00 04",
        means=Connack(False, Reason.BAD_USER_NAME_OR_PASSWORD)),
    row("connack 3.1.1 not authorized", 4, "20 02 00 05", means=Connack(False, Reason.NOT_AUTHORIZED)),
    row("connack 5", 5, "20 03 00 00 00", means=Connack()),
    row("connack 5 refusing", 5, "20 03 00 8A 00", means=Connack(False, Reason.BANNED)),
    row(
        "connack of a 3.1.1 server to a client of 5", 5, "20 02 00 01",
        means=Connack(False, Reason.UNSUPPORTED_PROTOCOL_VERSION), shortest=False,
    ),
    row(
        "connack 5 with all properties", 5,
        "20 3F 01 00 3C 11 00 00 00 0A 21 00 01 24 01 25 01 27 00 00 00 01 12 00 01", b"c",
            "22 FF FF 1F 00 01", b"r",
        "26 00 01", b"a", "00 01", b"b", "28 00 29 01 2A 00 13 00 3C 1A 00 01", b"i", "1C 00 01", b"s",
        "15 00 01", b"m", "16 00 01 00",
        means=Connack(True, Reason.SUCCESS, {
            "session_expiry_interval": 10, "receive_maximum": 1, "maximum_qos": 1, "retain_available": True,
            "maximum_packet_size": 1, "assigned_client_identifier": "c", "topic_alias_maximum": 65535,
            "reason_string": "r", "user_properties": [("a", "b")], "wildcard_subscription_available": False,
            "subscription_identifier_available": True, "shared_subscription_available": False,
            "server_keep_alive": 60, "response_information": "i", "server_reference": "s",
            "authentication_method": "m", "authentication_data": b"\0",
        }),
    ),
]  # fmt: skip

PUBLISH = [
    row("publish 3.1", 3, "30 05 00 01", b"a", b"on", means=Publish("a", b"on")),
    row("publish 3.1 of QoS 0 with dup", 3, "38 05 00 01", b"a", b"on",
        means=Publish("a", b"on", dup=True), shortest=False),
    row("publish 3.1.1", 4, "30 05 00 01", b"a", b"on", means=Publish("a", b"on")),
    row("publish 3.1.1 empty and retained", 4, "31 03 00 01", b"a", means=Publish("a", b"", retain=True)),
    row("publish 3.1.1 of QoS 1", 4, "32 07 00 01", b"a", "00 01", b"on",
        means=Publish("a", b"on", 1, packet_id=1)),
    row("publish 3.1.1 of QoS 2 again", 4, "3C 07 00 01", b"a", "FF FF", b"on",
        means=Publish("a", b"on", 2, dup=True, packet_id=65535)),
    row("publish to a system topic", 4, "30 06 00 04", b"$SYS", means=Publish("$SYS", b"")),
    row("publish to a topic with a byte order mark", 4, "30 06 00 04 EF BB BF", b"a",
        means=Publish("\ufeffa", b"")),
    row("publish to a topic of control and non-characters", 4, "30 07 00 05 01 7F EF BF BF",
        means=Publish("\x01\x7f\uffff", b"")),
    row("publish 5", 5, "30 06 00 01", b"a", "00", b"on", means=Publish("a", b"on")),
    row("publish 5 of all kinds at once", 5, "3D 08 00 01", b"a", "00 0A 00", b"on",
        means=Publish("a", b"on", 2, True, True, 10)),
    row("publish 5 by alias", 5, "30 07 00 00 03 23 00 01", b"x",
        means=Publish("", b"x", properties={"topic_alias": 1})),
    row(
        "publish 5 with all properties", 5,
        "30 29 00 01", b"a", "23 01 00 02 00 00 00 01 03 00 01", b"t", "08 00 01", b"r",
            "09 00 00 23 FF FF 0B 01",
        "0B FF FF FF 7F 26 00 01", b"k", "00 01", b"v", b"on",
        means=Publish("a", b"on", properties={
            "payload_format_indicator": 0, "message_expiry_interval": 1, "content_type": "t",
                "response_topic": "r",
            "correlation_data": b"", "topic_alias": 65535, "subscription_identifiers": [1, 268_435_455],
            "user_properties": [("k", "v")],
        }),
    ),
]  # fmt: skip

_ANSWERS: list[tuple[str, int, type[Puback | Pubrec | Pubrel | Pubcomp]]] = [
    ("puback", 0x40, Puback), ("pubrec", 0x50, Pubrec), ("pubrel", 0x62, Pubrel), ("pubcomp", 0x70, Pubcomp),
]  # fmt: skip
PUBLISH_ANSWERS = [
    made
    for name, first, kind in _ANSWERS
    for code in [Reason.NOT_AUTHORIZED if kind in (Puback, Pubrec) else Reason.PACKET_IDENTIFIER_NOT_FOUND]
    for made in (
        row(f"{name} 3.1", 3, bytes([first]), "02 00 01", means=kind(1)),
        row(f"{name} 3.1.1", 4, bytes([first]), "02 FF FF", means=kind(65535)),
        row(f"{name} 5", 5, bytes([first]), "02 00 01", means=kind(1)),
        row(f"{name} 5 with reason 0 spelt out", 5, bytes([first]), "03 00 01 00",
            means=kind(1), shortest=False),
        row(f"{name} 5 with all spelt out", 5, bytes([first]), "04 00 01 00 00",
            means=kind(1), shortest=False),
        row(f"{name} 5 with a reason", 5, bytes([first]), "03 00 01", bytes([code]), means=kind(1, code)),
        row(
            f"{name} 5 with properties", 5,
            bytes([first]), "0E 00 01 00 0A 1F 00 00 26 00 01", b"k", "00 01", b"v",
            means=kind(1, Reason.SUCCESS, {"reason_string": "", "user_properties": [("k", "v")]}),
        ),
    )
]  # fmt: skip
PUBLISH_ANSWERS += [
    row("puback 5 without subscribers", 5, "40 03 00 01 10", means=Puback(1, Reason.NO_MATCHING_SUBSCRIBERS)),
    row("pubrel 3.1 with dup", 3, "6A 02 00 01", means=Pubrel(1), shortest=False),
]

SUBSCRIBE = [
    row("subscribe 3.1", 3, "82 06 00 01 00 01", b"#", "01", means=Subscribe(1, (SubscriptionRequest("#", 1),))),
    row("subscribe 3.1 with dup and unused bits", 3, "8A 06 00 01 00 01", b"#", "FD",
        means=Subscribe(1, (SubscriptionRequest("#", 1),)), shortest=False),
    row("subscribe 3.1.1 to two", 4, "82 0C 00 01 00 03", b"a/+", "00 00 01", b"b", "02",
        means=Subscribe(1, (SubscriptionRequest("a/+"), SubscriptionRequest("b", 2)))),
    row("subscribe 5", 5, "82 07 00 01 00 00 01", b"a", "00", means=Subscribe(1, (SubscriptionRequest("a"),))),
    row(
        "subscribe 5 with all options and properties", 5,
        "82 14 FF FF 09 0B 05 26 00 01", b"k", "00 01", b"v", "00 01", b"a", "2E 00 01", b"b", "11",
        means=Subscribe(65535,
                        (SubscriptionRequest("a", 2, True, True, 2), SubscriptionRequest("b", 1, retain_handling=1)),
                        {"subscription_identifiers": [5], "user_properties": [("k", "v")]}),
    ),
    row("subscribe 5 shared", 5, "82 10 00 01 00 00 0A", b"$share/g/a", "01",
        means=Subscribe(1, (SubscriptionRequest("$share/g/a", 1),))),
]  # fmt: skip

SUBACK = [
    row("suback 3.1", 3, "90 03 00 01 02", means=Suback(1, (Reason.GRANTED_QOS_2,))),
    row("suback 3.1.1 of all kinds", 4, "90 06 00 01 00 01 02 80", means=Suback(
        1, (Reason.GRANTED_QOS_0, Reason.GRANTED_QOS_1, Reason.GRANTED_QOS_2, Reason.UNSPECIFIED_ERROR))),
    row("suback 5", 5, "90 05 00 01 00 00 8F",
        means=Suback(1, (Reason.GRANTED_QOS_0, Reason.TOPIC_FILTER_INVALID))),
    row("suback 5 with properties", 5, "90 08 00 01 04 1F 00 01", b"r", "A2",
        means=Suback(1, (Reason.WILDCARD_SUBSCRIPTIONS_NOT_SUPPORTED,), {"reason_string": "r"})),
]  # fmt: skip

UNSUBSCRIBE = [
    row("unsubscribe 3.1", 3, "A2 05 00 01 00 01", b"#", means=Unsubscribe(1, ("#",))),
    row("unsubscribe 3.1.1 from two", 4, "A2 08 00 01 00 01", b"#", "00 01", b"a",
        means=Unsubscribe(1, ("#", "a"))),
    row("unsubscribe 5", 5, "A2 06 00 01 00 00 01", b"#", means=Unsubscribe(1, ("#",))),
    row("unsubscribe 5 with a property", 5, "A2 0D 00 01 07 26 00 01", b"k", "00 01", b"v", "00 01", b"#",
        means=Unsubscribe(1, ("#",), {"user_properties": [("k", "v")]})),
]  # fmt: skip

UNSUBACK = [
    row("unsuback 3.1", 3, "B0 02 00 01", means=Unsuback(1)),
    row("unsuback 3.1.1", 4, "B0 02 00 01", means=Unsuback(1)),
    row("unsuback 5", 5, "B0 05 00 01 00 00 11",
        means=Unsuback(1, (Reason.SUCCESS, Reason.NO_SUBSCRIPTION_EXISTED))),
    row("unsuback 5 with a property", 5, "B0 08 00 01 04 1F 00 01", b"r", "87",
        means=Unsuback(1, (Reason.NOT_AUTHORIZED,), {"reason_string": "r"})),
]  # fmt: skip

PING = [row(f"pingreq {version}", version, "C0 00", means=Pingreq()) for version in (3, 4, 5)]
PING += [row(f"pingresp {version}", version, "D0 00", means=Pingresp()) for version in (3, 4, 5)]

DISCONNECT = [
    row("disconnect 3.1", 3, "E0 00", means=Disconnect()),
    row("disconnect 3.1.1", 4, "E0 00", means=Disconnect()),
    row("disconnect 5", 5, "E0 00", means=Disconnect()),
    row("disconnect 5 with reason 0 spelt out", 5, "E0 01 00", means=Disconnect(), shortest=False),
    row("disconnect 5 with all spelt out", 5, "E0 02 00 00", means=Disconnect(), shortest=False),
    row("disconnect 5 with the will", 5, "E0 01 04", means=Disconnect(Reason.DISCONNECT_WITH_WILL_MESSAGE)),
    row(
        "disconnect 5 with all properties", 5,
        "E0 16 9D 14 11 00 00 00 00 1F 00 01", b"r", "26 00 00 00 00 1C 00 03", b"b:1",
        means=Disconnect(Reason.SERVER_MOVED, {
            "session_expiry_interval": 0, "reason_string": "r", "user_properties": [("", "")],
            "server_reference": "b:1"}),
    ),
]  # fmt: skip

AUTH = [
    row("auth", 5, "F0 00", means=Auth()),
    row("auth to go on", 5, "F0 0F 18 0D 15 00 01", b"m", "16 00 01 00 26 00 00 00 00",
        means=Auth(Reason.CONTINUE_AUTHENTICATION, {
            "authentication_method": "m", "authentication_data": b"\0", "user_properties": [("", "")]})),
    row("auth again", 5, "F0 0A 19 08 15 00 01", b"m", "1F 00 01", b"r",
        means=Auth(Reason.RE_AUTHENTICATE, {"authentication_method": "m", "reason_string": "r"})),
]  # fmt: skip

VALID = (
    *(CONNECT + CONNACK + PUBLISH + PUBLISH_ANSWERS + SUBSCRIBE + SUBACK),
    *(UNSUBSCRIBE + UNSUBACK + PING + DISCONNECT + AUTH),
)

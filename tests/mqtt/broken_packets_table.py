"""Every way we know to break a packet, by name: its bytes and the fault they are. MQTT 5.0, 3 and 4.13."""

from rumq.mqtt.errors import (
    MalformedPacket,
    MqttFault,
    ProtocolViolation,
    TopicNameInvalid,
    UnsupportedVersion,
)
from rumq.mqtt.packet_types import PacketType
from rumq.mqtt.reasons import Reason
from tests.mqtt.packets_table import VALID, Fault, Row, row, wire

MALFORMED: Fault = (MalformedPacket, Reason.MALFORMED_PACKET)
VIOLATION: Fault = (ProtocolViolation, Reason.PROTOCOL_ERROR)
BAD_TOPIC: Fault = (TopicNameInvalid, Reason.TOPIC_NAME_INVALID)
BAD_VERSION: Fault = (UnsupportedVersion, Reason.UNSUPPORTED_PROTOCOL_VERSION)
BAD_ID: Fault = (MqttFault, Reason.CLIENT_IDENTIFIER_NOT_VALID)
BAD_ALIAS: Fault = (MqttFault, Reason.TOPIC_ALIAS_INVALID)


def _packet(name: str, version: int, first_byte: int, means: Fault, *body: str | bytes) -> Row:
    """A row whose remaining length is right, so that only what it is named for is wrong."""
    inside = wire(*body)
    return row(name, version, bytes([first_byte, len(inside)]), inside, means=means)


def _connect(name: str, version: int, means: Fault, flags: str, *rest: str | bytes) -> Row:
    protocol = (b"MQIsdp",) if version == 3 else (b"MQTT",)
    head = bytes([0, len(protocol[0])]) + protocol[0] + bytes([version])
    return _packet(name, version, 0x10, means, head, flags, "00 3C", *rest)


def _with_properties(name: str, means: Fault, *properties: str | bytes, first_byte: int = 0x30) -> Row:
    """A PUBLISH, or the packet of `first_byte`, whose only fault is in its properties."""
    inside = wire(*properties)
    part = bytes([len(inside)]) + inside
    if first_byte == 0x10:
        return _connect(name, 5, means, "02", part, "00 01", b"p")
    before = {0x20: b"\0\0", 0x30: b"\0\1a", 0x40: b"\0\1\0", 0x82: b"\0\1", 0xE0: b"\0", 0xF0: b"\x18"}[first_byte]
    return _packet(name, 5, first_byte, means, before, part, b"\0\1a\0" if first_byte == 0x82 else b"")


_PLAIN = {(PacketType(a.wire[0] >> 4), a.version): a for a in reversed(VALID)}
_FLAGS = [
    row(f"{a.name} with the flags {flags}", version, bytes([kind << 4 | flags]), a.wire[1:], means=MALFORMED)
    for (kind, version), a in sorted(_PLAIN.items())
    for flags in (0, 1, 2, 3, 4, 8, 10)
    if version > 3 and kind is not PacketType.PUBLISH and flags != a.wire[0] & 15
]

HEADER = [
    *_FLAGS,
    *(_packet(f"packet type 0 in {version}", version, 0x00, MALFORMED) for version in (3, 4, 5)),
    *(_packet(f"packet type 15 in {version}", version, 0xF0, MALFORMED) for version in (3, 4)),
    row("a remaining length of five bytes", 4, "30 80 80 80 80 01", means=MALFORMED),
    row("a remaining length longer than it needs", 5, "C0 80 00", means=MALFORMED),
]

CONNECT = [
    _packet("connect of nothing", 4, 0x10, MALFORMED),
    _packet("connect without a level", 4, 0x10, MALFORMED, "00 04", b"MQTT"),
    _packet("connect of level 6", 5, 0x10, BAD_VERSION, "00 04", b"MQTT", "06 02 00 00 00 00 00"),
    _packet("connect of level 0", 4, 0x10, BAD_VERSION, "00 04", b"MQTT", "00 02 00 00 00 00"),
    _packet("connect of the old name and a new level", 4, 0x10, BAD_VERSION, "00 06", b"MQIsdp",
        "04 02 00 00 00 00"),
    _packet("connect of the new name and the old level", 3, 0x10, BAD_VERSION, "00 04", b"MQTT",
        "03 02 00 00 00 00"),
    _packet("connect of mqtt in small letters", 4, 0x10, BAD_VERSION, "00 04", b"mqtt", "04 02 00 00 00 00"),
    _connect("connect 3.1.1 with the reserved flag", 4, MALFORMED, "03", "00 00"),
    _connect("connect 5 with the reserved flag", 5, MALFORMED, "03", "00 00 00"),
    _connect("connect 3.1 with a will of QoS 3", 3, MALFORMED, "1E", "00 01", b"p", "00 01", b"g", "00 00"),
    _connect("connect 3.1.1 with a will of QoS 3", 4, MALFORMED, "1E", "00 01", b"p", "00 01", b"g", "00 00"),
    _connect("connect 5 with a will of QoS 3", 5, MALFORMED, "1E", "00 00 00 00 00 01", b"g", "00 00"),
    _connect("connect 3.1.1 with a will QoS and no will", 4, VIOLATION, "0A", "00 00"),
    _connect("connect 3.1.1 with will retain and no will", 4, VIOLATION, "22", "00 00"),
    _connect("connect 5 with a will QoS and no will", 5, VIOLATION, "12", "00 00 00"),
    _connect("connect 5 with will retain and no will", 5, VIOLATION, "22", "00 00 00"),
    _connect("connect 3.1.1 with a password alone", 4, VIOLATION, "42", "00 00 00 01", b"x"),
    _connect("connect 3.1 without an id", 3, BAD_ID, "02", "00 00"),
    _connect("connect 3.1.1 to go on without an id", 4, BAD_ID, "00", "00 00"),
    _connect("connect 3.1.1 with a user name flag and no user name", 4, MALFORMED, "82", "00 00"),
    _connect("connect 3.1.1 with a password flag and no password", 4, MALFORMED, "C2", "00 00 00 01", b"u"),
    _connect("connect 3.1.1 with a will flag and no will", 4, MALFORMED, "06", "00 00"),
    _connect("connect 5 with an id that ends early", 5, MALFORMED, "02", "00 00 05", b"p7"),
    _connect("connect 3.1.1 with an id of bad UTF-8", 4, MALFORMED, "02", "00 01 FF"),
    _connect("connect 3.1.1 with a user name of bad UTF-8", 4, MALFORMED, "82", "00 00 00 02 C3 28"),
    _connect("connect 3.1.1 with more behind its end", 4, MALFORMED, "02", "00 00 00"),
    _connect("connect 3.1 with more behind its end", 3, MALFORMED, "02", "00 01", b"p", "00"),
    _connect("connect 3.1.1 with a wildcard in its will topic", 4, BAD_TOPIC, "06", "00 00 00 01", b"#",
        "00 00"),
    _connect("connect 5 with an empty will topic", 5, BAD_TOPIC, "06", "00 00 00 00 00 00 00 00"),
    _connect("connect 5 without properties", 5, MALFORMED, "02"),
    _connect("connect 5 with properties longer than it", 5, MALFORMED, "02", "08 00 00"),
    _connect("connect 5 with a bad will property", 5, MALFORMED, "06", "00 00 00 03 23 00 01 00 01", b"g",
        "00 00"),
    _connect("connect 5 with the will delay twice", 5, VIOLATION, "06",
             "00 00 00 0A 18 00 00 00 01 18 00 00 00 01 00 01", b"g", "00 00"),
    _with_properties("connect 5 with a will's property", MALFORMED, "18 00 00 00 01", first_byte=0x10),
    _with_properties("connect 5 with authentication data alone", VIOLATION, "16 00 01 00", first_byte=0x10),
    _with_properties("connect 5 with the authentication method twice", VIOLATION,
                     "15 00 01", b"a", "15 00 01", b"a", first_byte=0x10),
    _with_properties("connect 5 with a receive maximum of 0", VIOLATION, "21 00 00", first_byte=0x10),
    _with_properties("connect 5 with a maximum packet size of 0", VIOLATION, "27 00 00 00 00",
        first_byte=0x10),
    _with_properties("connect 5 with request problem information 2", VIOLATION, "17 02", first_byte=0x10),
    _with_properties("connect 5 with request response information 2", VIOLATION, "19 02", first_byte=0x10),
    _with_properties("connect 5 with the session expiry twice", VIOLATION,
                     "11 00 00 00 01 11 00 00 00 01", first_byte=0x10),
]  # fmt: skip

CONNACK = [
    _packet("connack of nothing", 4, 0x20, MALFORMED),
    _packet("connack 3.1.1 without a return code", 4, 0x20, MALFORMED, "00"),
    _packet("connack 3.1.1 with a reserved flag", 4, 0x20, MALFORMED, "02 00"),
    _packet("connack 5 with a reserved flag", 5, 0x20, MALFORMED, "80 00 00"),
    _packet("connack 3.1.1 with return code 6", 4, 0x20, VIOLATION, "00 06"),
    _packet("connack 3.1.1 that refuses and has a session", 4, 0x20, VIOLATION, "01 05"),
    _packet("connack 5 that refuses and has a session", 5, 0x20, VIOLATION, "01 87 00"),
    _packet("connack 5 with a reason of DISCONNECT", 5, 0x20, VIOLATION, "00 8E 00"),
    _packet("connack 5 without properties", 5, 0x20, MALFORMED, "00 00"),
    _packet("connack 3.1.1 with more behind its end", 4, 0x20, MALFORMED, "00 00 00"),
    *(
        _with_properties(f"connack 5 with {name} 2", VIOLATION, f"{code:02X} 02", first_byte=0x20)
        for code, name in (
            (0x24, "maximum QoS"), (0x25, "retain available"), (0x28, "wildcard subscription available"),
            (0x29, "subscription identifier available"), (0x2A, "shared subscription available"),
        )
    ),
]  # fmt: skip

PUBLISH = [
    *(_packet(f"publish {version} of QoS 3", version, 0x36, MALFORMED, "00 01", b"a",
        "00 01 00") for version in (3, 4, 5)),
    *(_packet(f"publish {version} of QoS 0 with dup", version, 0x38, MALFORMED, "00 01", b"a",
        "00") for version in (4, 5)),
    *(_packet(f"publish {version} with packet id 0", version, 0x32, VIOLATION, "00 01", b"a",
        "00 00 00") for version in (3, 4, 5)),
    *(_packet(f"publish {version} to a wildcard", version, 0x30, BAD_TOPIC, "00 03", b"a/+",
        "00") for version in (3, 4, 5)),
    *(_packet(f"publish {version} to no topic", version, 0x30, VIOLATION, "00 00 00")
        for version in (3, 4, 5)),
    _packet("publish of nothing", 4, 0x30, MALFORMED),
    _packet("publish with a topic that ends early", 4, 0x30, MALFORMED, "00 05", b"a"),
    _packet("publish with a packet id that ends early", 4, 0x32, MALFORMED, "00 01", b"a", "00"),
    _packet("publish 5 without properties", 5, 0x30, MALFORMED, "00 01", b"a"),
    _packet("publish to a topic with U+0000", 4, 0x30, MALFORMED, "00 03", b"a\0b"),
    _packet("publish to a topic of a surrogate", 4, 0x30, MALFORMED, "00 03 ED A0 80"),
    _packet("publish to a topic of an overlong U+0000", 4, 0x30, MALFORMED, "00 02 C0 80"),
    _packet("publish to a topic beyond U+10FFFF", 4, 0x30, MALFORMED, "00 04 F4 90 80 80"),
    _packet("publish to a topic cut inside a character", 4, 0x30, MALFORMED, "00 02 E2 82"),
    _packet("publish 5 with a property length longer than it needs", 5, 0x30, MALFORMED, "00 01", b"a",
        "80 00"),
    _packet("publish 5 with a property length of five bytes", 5, 0x30, MALFORMED, "00 01", b"a",
        "80 80 80 80 00"),
    _packet("publish 5 with properties longer than it", 5, 0x30, MALFORMED, "00 01", b"a", "05 01 00"),
    _packet("publish 5 with a property that its length cuts", 5, 0x30, MALFORMED, "00 01", b"a", "01 01 00"),
    _packet("publish 5 with an expiry cut by the property length", 5, 0x30, MALFORMED,
            "00 01", b"a", "03 02 00 00", b"payload"),
    _packet("publish 5 with a content type cut by the property length", 5, 0x30, MALFORMED,
            "00 01", b"a", "04 03 00 04", b"payload"),
    _with_properties("publish 5 with property 0", MALFORMED, "00 00"),
    _with_properties("publish 5 with property 0x7F", MALFORMED, "7F 00"),
    _with_properties("publish 5 with property 128", MALFORMED, "80 01 00"),
    _with_properties("publish 5 with a property number longer than it needs", MALFORMED, "81 00 00"),
    _with_properties("publish 5 with a reason string", MALFORMED, "1F 00 00"),
    _with_properties("publish 5 with a user property of bad UTF-8", MALFORMED, "26 00 01 FF 00 00"),
    _with_properties("publish 5 with half a user property", MALFORMED, "26 00 01", b"k"),
    _with_properties("publish 5 with payload format 2", VIOLATION, "01 02"),
    _with_properties("publish 5 with topic alias 0", BAD_ALIAS, "23 00 00"),
    _with_properties("publish 5 with subscription identifier 0", VIOLATION, "0B 00"),
    _with_properties("publish 5 with a wildcard in its response topic", VIOLATION, "08 00 01", b"+"),
    _with_properties("publish 5 with an empty response topic", VIOLATION, "08 00 00"),
    _with_properties("publish 5 with the payload format twice", VIOLATION, "01 01 01 01"),
    _with_properties("publish 5 with the expiry twice", VIOLATION, "02 00 00 00 01 02 00 00 00 01"),
    _with_properties("publish 5 with the content type twice", VIOLATION, "03 00 00 03 00 00"),
    _with_properties("publish 5 with the response topic twice", VIOLATION, "08 00 01", b"r", "08 00 01",
        b"r"),
    _with_properties("publish 5 with the correlation data twice", VIOLATION, "09 00 00 09 00 00"),
    _with_properties("publish 5 with the topic alias twice", VIOLATION, "23 00 01 23 00 01"),
]  # fmt: skip

PUBLISH_ANSWERS = [
    made
    for name, first, foreign in (
        ("puback", 0x40, "92"), ("pubrec", 0x50, "92"), ("pubrel", 0x62, "10"), ("pubcomp", 0x70, "80"),
    )
    for made in (
        _packet(f"{name} of nothing", 4, first, MALFORMED),
        _packet(f"{name} of half a packet id", 5, first, MALFORMED, "00"),
        _packet(f"{name} with packet id 0", 4, first, VIOLATION, "00 00"),
        _packet(f"{name} 3.1 with more behind its end", 3, first, MALFORMED, "00 01 00"),
        _packet(f"{name} 3.1.1 with more behind its end", 4, first, MALFORMED, "00 01 00"),
        _packet(f"{name} 5 with more behind its end", 5, first, MALFORMED, "00 01 00 00 00"),
        _packet(f"{name} 5 with a reason of another packet", 5, first, VIOLATION, "00 01", foreign),
        _packet(f"{name} 5 with a reason that is none", 5, first, VIOLATION, "00 01 7F"),
        _packet(f"{name} 5 with the reason string twice", 5, first, VIOLATION,
            "00 01 00 06 1F 00 00 1F 00 00"),
        _packet(f"{name} 5 with a property of another packet", 5, first, MALFORMED, "00 01 00 03 23 00 01"),
    )
]  # fmt: skip

SUBSCRIBE = [
    *(_packet(f"subscribe {version} with packet id 0", version, 0x82, VIOLATION, "00 00 00 00 01", b"a",
        "00") for version in (3, 4, 5)),
    *(_packet(f"subscribe {version} to nothing", version, 0x82, VIOLATION, "00 01") for version in (3, 4)),
    _packet("subscribe 5 to nothing", 5, 0x82, VIOLATION, "00 01 00"),
    _packet("subscribe 3.1.1 without a QoS", 4, 0x82, MALFORMED, "00 01 00 01", b"a"),
    _packet("subscribe 3.1 of QoS 3", 3, 0x82, MALFORMED, "00 01 00 01", b"a", "03"),
    _packet("subscribe 3.1.1 of QoS 3", 4, 0x82, MALFORMED, "00 01 00 01", b"a", "03"),
    _packet("subscribe 3.1.1 with the options of 5", 4, 0x82, MALFORMED, "00 01 00 01", b"a", "04"),
    _packet("subscribe 3.1.1 to bad UTF-8", 4, 0x82, MALFORMED, "00 01 00 01 FE 00"),
    _packet("subscribe 5 of QoS 3", 5, 0x82, VIOLATION, "00 01 00 00 01", b"a", "03"),
    _packet("subscribe 5 with retain handling 3", 5, 0x82, VIOLATION, "00 01 00 00 01", b"a", "30"),
    _packet("subscribe 5 with reserved bit 6", 5, 0x82, MALFORMED, "00 01 00 00 01", b"a", "40"),
    _packet("subscribe 5 with reserved bit 7", 5, 0x82, MALFORMED, "00 01 00 00 01", b"a", "80"),
    _packet("subscribe 5 shared and no local", 5, 0x82, VIOLATION, "00 01 00 00 0A", b"$share/g/a", "04"),
    _with_properties("subscribe 5 with subscription identifier 0", VIOLATION, "0B 00", first_byte=0x82),
    _with_properties("subscribe 5 with two subscription identifiers", VIOLATION, "0B 01 0B 02",
        first_byte=0x82),
    _with_properties("subscribe 5 with a subscription identifier of five bytes", MALFORMED,
                     "0B FF FF FF FF 01", first_byte=0x82),
    _with_properties("subscribe 5 with a reason string", MALFORMED, "1F 00 00", first_byte=0x82),
]  # fmt: skip

SUBACK = [
    _packet("suback with packet id 0", 4, 0x90, VIOLATION, "00 00 00"),
    _packet("suback 3.1.1 without a return code", 4, 0x90, VIOLATION, "00 01"),
    _packet("suback 5 without a reason", 5, 0x90, VIOLATION, "00 01 00"),
    _packet("suback 3.1.1 with a reserved return code", 4, 0x90, VIOLATION, "00 01 03"),
    _packet("suback 3.1.1 with a reason of 5", 4, 0x90, VIOLATION, "00 01 87"),
    _packet("suback 5 with a reason of UNSUBACK", 5, 0x90, VIOLATION, "00 01 00 11"),
]

UNSUBSCRIBE = [
    _packet("unsubscribe with packet id 0", 4, 0xA2, VIOLATION, "00 00 00 01", b"a"),
    _packet("unsubscribe 3.1.1 from nothing", 4, 0xA2, VIOLATION, "00 01"),
    _packet("unsubscribe 5 from nothing", 5, 0xA2, VIOLATION, "00 01 00"),
    _packet("unsubscribe 3.1.1 with a filter that ends early", 4, 0xA2, MALFORMED, "00 01 00 02", b"a"),
    _packet("unsubscribe 5 with a subscription identifier", 5, 0xA2, MALFORMED, "00 01 02 0B 01 00 01", b"a"),
]

UNSUBACK = [
    _packet("unsuback with packet id 0", 4, 0xB0, VIOLATION, "00 00"),
    _packet("unsuback 3.1.1 with a reason", 4, 0xB0, MALFORMED, "00 01 00"),
    _packet("unsuback 5 without a reason", 5, 0xB0, VIOLATION, "00 01 00"),
    _packet("unsuback 5 with a reason of SUBACK", 5, 0xB0, VIOLATION, "00 01 00 02"),
]

REST = [
    *(_packet(f"pingreq {version} with a body", version, 0xC0, MALFORMED, "00") for version in (3, 4, 5)),
    *(_packet(f"pingresp {version} with a body", version, 0xD0, MALFORMED, "00") for version in (3, 4, 5)),
    *(_packet(f"disconnect {version} with a body", version, 0xE0, MALFORMED, "00") for version in (3, 4)),
    _packet("disconnect 5 with a reason of CONNACK", 5, 0xE0, VIOLATION, "86"),
    _packet("disconnect 5 with more behind its end", 5, 0xE0, MALFORMED, "00 00 00"),
    _with_properties("disconnect 5 with a topic alias", MALFORMED, "23 00 01", first_byte=0xE0),
    _with_properties("disconnect 5 with the server reference twice", VIOLATION, "1C 00 00 1C 00 00", first_byte=0xE0),
    _packet("auth of a reason alone", 5, 0xF0, MALFORMED, "18"),
    _packet("auth with a reason of CONNACK", 5, 0xF0, VIOLATION, "87 04 15 00 01", b"m"),
    _packet("auth without a method", 5, 0xF0, VIOLATION, "18 00"),
    _with_properties("auth with authentication data alone", VIOLATION, "16 00 00", first_byte=0xF0),
    _with_properties(
        "auth with the authentication data twice", VIOLATION, "15 00 01", b"m", "16 00 00 16 00 00", first_byte=0xF0
    ),
]

BROKEN = (
    *(HEADER + CONNECT + CONNACK + PUBLISH + PUBLISH_ANSWERS),
    *(SUBSCRIBE + SUBACK + UNSUBSCRIBE + UNSUBACK + REST),
)

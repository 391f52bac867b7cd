"""CONNECT from bytes, in all three versions. MQTT 5.0, 3.1; MQTT 3.1.1, 3.1; MQTT 3.1, 3.1 (MQIsdp).

It is the only packet that says its own version. What 3.1.1 and 5 forbid and 3.1 leaves open is accepted for 3.1."""
# compiled: warm

from typing import Final

from rumq.mqtt.errors import MalformedPacket, MqttFault, ProtocolViolation, UnsupportedVersion
from rumq.mqtt.packet_types import PacketType
from rumq.mqtt.packets import Connect, Will
from rumq.mqtt.properties import WILL, Properties, decode_properties
from rumq.mqtt.reasons import Reason
from rumq.mqtt.topics import check_topic_name
from rumq.mqtt.wire import Fields

PROTOCOLS: Final = {(b"MQIsdp", 3): 3, (b"MQTT", 4): 4, (b"MQTT", 5): 5}
"""(protocol name, protocol level) -> version."""
HEADS: Final = {b"\x00\x04MQTT\x04": 4, b"\x00\x04MQTT\x05": 5}
"""How a CONNECT of today begins -> version."""
HEAD_BYTES: Final = 7

CLEAN_START, WILL_FLAG, WILL_QOS, WILL_RETAIN, PASSWORD, USERNAME = 0x02, 0x04, 0x18, 0x20, 0x40, 0x80


def version_of_connect(body: bytes) -> int:
    """3, 4 or 5: which version a CONNECT speaks, though the rest of it may be faulty. Answer in that one.

    raises: UnsupportedVersion; MalformedPacket where even the protocol level is missing
    """
    return _take_version(Fields(body))


def id_may_be_empty(version: int, clean_start: bool) -> bool:
    """Whether the server may be left to choose the identifier. MQTT 5.0, 3.1.3.1; MQTT 3.1.1, 3.1.3.1."""
    return version == 5 or (version == 4 and clean_start)


def decode_connect(first_byte: int, body: bytes) -> Connect:
    """raises: MqttFault; 0x85 for an empty client id that the version does not allow"""
    fields = Fields(body)
    version = _take_version(fields)
    if first_byte & 0x0F and version > 3:
        raise MalformedPacket(f"the flags of CONNECT are 0x{first_byte & 0x0F:X}, and must be 0")
    flags = fields.byte("connect flags")
    _check_flags(flags, version)
    keep_alive = fields.two_bytes("keep alive")
    properties = Properties()
    if version == 5:
        properties = decode_properties(fields, PacketType.CONNECT)
        if "authentication_data" in properties and "authentication_method" not in properties:
            raise ProtocolViolation("a CONNECT has authentication data without an authentication method")
    client_id = fields.string("client identifier")
    will = _take_will(fields, flags, version) if flags & WILL_FLAG else None
    # MQTT 3.1, 3.1: for the sake of older clients a flag may be set and its string be missing.
    has_username = flags & USERNAME and (version > 3 or fields)
    username = fields.string("user name") if has_username else None
    has_password = flags & PASSWORD and (version > 3 or fields)
    password = fields.binary("password") if has_password else None
    fields.finish()
    clean_start = bool(flags & CLEAN_START)
    if not client_id and not id_may_be_empty(version, clean_start):
        raise MqttFault(
            "a CONNECT with an empty client identifier: 3.1.1 allows it only with clean session, 3.1 never",
            Reason.CLIENT_IDENTIFIER_NOT_VALID,
        )
    return Connect(client_id, version, clean_start, keep_alive, username, password, will, properties)


def _take_version(fields: Fields) -> int:
    at = fields.at
    known = HEADS.get(fields.body[at : at + HEAD_BYTES])
    if known is not None:
        fields.at = at + HEAD_BYTES
        return known
    name, level = fields.binary("protocol name"), fields.byte("protocol level")
    version = PROTOCOLS.get((name, level))
    if version is None:
        raise UnsupportedVersion(
            f"a CONNECT of protocol {ascii(name[:20])[1:]} level {level}: spoken are MQTT 3.1, 3.1.1 and 5.0",
            # Bit 7 marks a bridge of mosquitto, which reads the answer of the version below it.
            5 if name == b"MQTT" and level & 0x7F >= 5 else 4,
        )
    return version


def _check_flags(flags: int, version: int) -> None:
    if flags & WILL_QOS == WILL_QOS and (flags & WILL_FLAG or version > 3):
        raise MalformedPacket("a CONNECT with a will of QoS 3")
    if version == 3:
        return
    if flags & 1:
        raise MalformedPacket("a CONNECT with the reserved connect flag set")
    if not flags & WILL_FLAG and flags & (WILL_QOS | WILL_RETAIN):
        raise ProtocolViolation("a CONNECT without a will has a will QoS or will retain")
    if version == 4 and flags & PASSWORD and not flags & USERNAME:
        raise ProtocolViolation("a CONNECT of MQTT 3.1.1 has a password and no user name")


def _take_will(fields: Fields, flags: int, version: int) -> Will:
    properties = decode_properties(fields, WILL) if version == 5 else Properties()
    topic = fields.string("will topic")
    payload = fields.binary("will payload")
    check_topic_name(topic)
    return Will(topic, payload, (flags & WILL_QOS) >> 3, bool(flags & WILL_RETAIN), properties)

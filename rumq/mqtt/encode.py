"""A packet to its bytes, in MQTT 3.1, 3.1.1 and 5.0, both directions, in the shortest form. MQTT 5.0, 3.

What a version cannot express is left out: before 5 the properties, the subscription options except QoS, and all reason
codes except those of CONNACK and SUBACK. What `decode` would refuse is a ValueError, as it is a bug of ours. The order
of packets is not checked. PUBLISH packets for subscribers are made by `rumq.mqtt.kernels.fanout`."""
# compiled: warm

from collections.abc import Callable, Mapping
from typing import Any, Final

from rumq.mqtt import packets
from rumq.mqtt.connect import (
    CLEAN_START,
    PASSWORD,
    PROTOCOLS,
    USERNAME,
    WILL_FLAG,
    WILL_RETAIN,
    id_may_be_empty,
)
from rumq.mqtt.frames import write_frame
from rumq.mqtt.packet_types import FIRST_BYTE, PacketType
from rumq.mqtt.packets import Packet
from rumq.mqtt.properties import WILL, Properties, encode_properties
from rumq.mqtt.reasons import REASONS_IN, Reason, maybe_connack_return_code
from rumq.mqtt.topics import SHARE_PREFIX, has_wildcard
from rumq.mqtt.wire import write_binary, write_integer, write_string

_SUBACK_RETURN_CODES: Final = bytes(code if code < 0x80 else 0x80 for code in range(256))


def encode(packet: Packet, version: int) -> bytes:
    """The bytes of one packet.

    version: 3, 4 or 5, the connection's; that of a CONNECT must be its own
    raises:  ValueError for a wrong packet of ours, and for what this version cannot say: an AUTH before 5, or
             a CONNACK before 5 whose reason has no return code (the connection is closed without one)
    """
    if isinstance(packet, packets.Publish):
        return _publish(packet, version)
    packet_type, write = _ENCODERS[type(packet)]
    return write_frame(FIRST_BYTE[packet_type], write(packet, version))


def _connect(packet: packets.Connect, version: int) -> bytes:
    if packet.version != version or version not in _PROTOCOL_OF:
        raise ValueError(f"a CONNECT of version {packet.version} on a connection of version {version}")
    if version < 5 and packet.password is not None and packet.username is None:
        raise ValueError("before MQTT 5 a CONNECT with a password needs a user name")
    if not packet.client_id and not id_may_be_empty(version, packet.clean_start):
        raise ValueError(f"a CONNECT of version {version} needs a client identifier")
    _need_method_for_data(packet.properties)
    will = packet.will
    flags = CLEAN_START if packet.clean_start else 0
    if will is not None:
        if not will.topic or has_wildcard(will.topic):
            raise ValueError(f"a will to {will.topic!r}, which is no topic name")
        flags |= WILL_FLAG | _qos(will.qos) << 3 | (WILL_RETAIN if will.retain else 0)
    flags |= USERNAME if packet.username is not None else 0
    flags |= PASSWORD if packet.password is not None else 0
    name, level = _PROTOCOL_OF[version]
    out = write_binary(name) + bytes((level, flags)) + write_integer(packet.keep_alive, 2)
    out += _properties(packet.properties, PacketType.CONNECT, version)
    out += write_string(packet.client_id)
    if will is not None:
        out += _properties(will.properties, WILL, version)
        out += write_string(will.topic) + write_binary(will.payload)
    if packet.username is not None:
        out += write_string(packet.username)
    if packet.password is not None:
        out += write_binary(packet.password)
    return out


def _connack(packet: packets.Connack, version: int) -> bytes:
    if packet.session_present and packet.reason != Reason.SUCCESS:
        raise ValueError("a CONNACK that refuses cannot have a session present")
    if version == 5:
        code = _reason(packet.reason, PacketType.CONNACK)
    else:
        return_code = maybe_connack_return_code(packet.reason)
        if return_code is None:
            raise ValueError(f"no CONNACK before MQTT 5 says {packet.reason.text}: close without one")
        code = bytes((return_code,))
    # MQTT 3.1 has no session present: the byte is reserved there.
    flags = bytes((packet.session_present and version > 3,))
    return flags + code + _properties(packet.properties, PacketType.CONNACK, version)


def _publish(packet: packets.Publish, version: int) -> bytes:
    qos = _qos(packet.qos)
    if has_wildcard(packet.topic):
        raise ValueError(f"a PUBLISH to {packet.topic!r}, which has a wildcard")
    if not packet.topic and (version < 5 or "topic_alias" not in packet.properties):
        raise ValueError("a PUBLISH with an empty topic and no topic alias")
    if packet.dup and not qos:
        raise ValueError("a PUBLISH of QoS 0 cannot be a duplicate")
    if (packet.packet_id is None) != (qos == 0):
        raise ValueError(f"a PUBLISH of QoS {qos} with packet identifier {packet.packet_id}")
    packet_id = b"" if packet.packet_id is None else _packet_id(packet.packet_id)
    body = write_string(packet.topic) + packet_id
    body += _properties(packet.properties, PacketType.PUBLISH, version)
    first_byte = PacketType.PUBLISH << 4 | packet.dup << 3 | qos << 1 | packet.retain
    return write_frame(first_byte, body, packet.payload)


def _publish_answer(packet_type: PacketType) -> Callable[[Any, int], bytes]:
    def write(packet: packets.Puback | packets.Pubrec | packets.Pubrel | packets.Pubcomp, version: int) -> bytes:
        packet_id = _packet_id(packet.packet_id)
        return packet_id if version < 5 else packet_id + _tail(packet.reason, packet.properties, packet_type)

    return write


def _subscribe(packet: packets.Subscribe, version: int) -> bytes:
    if not packet.filters:
        raise ValueError("a SUBSCRIBE needs a topic filter")
    out = _packet_id(packet.packet_id) + _properties(packet.properties, PacketType.SUBSCRIBE, version)
    for wanted in packet.filters:
        options = _qos(wanted.qos)
        if version == 5:
            if wanted.retain_handling not in (0, 1, 2):
                raise ValueError(f"there is no retain handling {wanted.retain_handling}")
            if wanted.no_local and wanted.topic_filter.startswith(SHARE_PREFIX):
                raise ValueError("a shared subscription cannot have no local set")
            options |= wanted.no_local << 2 | wanted.retain_as_published << 3 | wanted.retain_handling << 4
        out += write_string(wanted.topic_filter) + bytes((options,))
    return out


def _suback(packet: packets.Suback, version: int) -> bytes:
    if not packet.reasons:
        raise ValueError("a SUBACK needs a reason code for each filter")
    codes = _reasons(packet.reasons, PacketType.SUBACK)
    if version < 5:
        # 3.1 knows no refusal. Many of its clients know 0x80 all the same, and one that masks it sees QoS 0.
        codes = codes.translate(_SUBACK_RETURN_CODES)
    return _packet_id(packet.packet_id) + _properties(packet.properties, PacketType.SUBACK, version) + codes


def _unsubscribe(packet: packets.Unsubscribe, version: int) -> bytes:
    if not packet.filters:
        raise ValueError("an UNSUBSCRIBE needs a topic filter")
    head = _packet_id(packet.packet_id) + _properties(packet.properties, PacketType.UNSUBSCRIBE, version)
    return head + b"".join(map(write_string, packet.filters))


def _unsuback(packet: packets.Unsuback, version: int) -> bytes:
    head = _packet_id(packet.packet_id)
    if version < 5:
        return head
    if not packet.reasons:
        raise ValueError("an UNSUBACK of MQTT 5 needs a reason code for each filter")
    head += encode_properties(packet.properties, PacketType.UNSUBACK)
    return head + _reasons(packet.reasons, PacketType.UNSUBACK)


def _ping(packet: packets.Pingreq | packets.Pingresp, version: int) -> bytes:
    return b""


def _disconnect(packet: packets.Disconnect, version: int) -> bytes:
    return b"" if version < 5 else _tail(packet.reason, packet.properties, PacketType.DISCONNECT)


def _auth(packet: packets.Auth, version: int) -> bytes:
    if version < 5:
        raise ValueError("there is no AUTH before MQTT 5")
    if packet.reason == Reason.SUCCESS and not packet.properties:
        return b""
    if "authentication_method" not in packet.properties:
        raise ValueError("an AUTH needs an authentication method")
    return _reason(packet.reason, PacketType.AUTH) + encode_properties(packet.properties, PacketType.AUTH)


def _need_method_for_data(properties: Properties) -> None:
    if "authentication_data" in properties and "authentication_method" not in properties:
        raise ValueError("authentication data needs an authentication method")


def _tail(reason: Reason, properties: Properties, packet_type: PacketType) -> bytes:
    """A reason code and properties as short as 3.4.2.1 and 3.14.2.1 allow."""
    code = _reason(reason, packet_type)
    if properties:
        return code + encode_properties(properties, packet_type)
    return b"" if reason == Reason.SUCCESS else code


def _properties(properties: Properties, place: int, version: int) -> bytes:
    return encode_properties(properties, place) if version == 5 else b""


def _reason(reason: Reason, packet_type: PacketType) -> bytes:
    if reason not in REASONS_IN[packet_type]:
        raise ValueError(f"the reason code 0x{reason:02X} does not belong in {packet_type.name}")
    return bytes((reason,))


def _reasons(reasons: tuple[Reason, ...], packet_type: PacketType) -> bytes:
    """Many of them, at a few ns each."""
    codes = bytes(reasons)
    for code in codes.translate(None, bytes(REASONS_IN[packet_type])):
        raise ValueError(f"the reason code 0x{code:02X} does not belong in {packet_type.name}")
    return codes


def _packet_id(packet_id: int) -> bytes:
    if not 1 <= packet_id <= 0xFFFF:
        raise ValueError(f"{packet_id} is no packet identifier: 1 to 65535 are")
    return packet_id.to_bytes(2)


def _qos(qos: int) -> int:
    if qos not in (0, 1, 2):
        raise ValueError(f"there is no QoS {qos}")
    return qos


_PROTOCOL_OF: Final = {version: protocol for protocol, version in PROTOCOLS.items()}

_ENCODERS: Final[Mapping[type[Packet], tuple[PacketType, Callable[[Any, int], bytes]]]] = {
    packets.Connect: (PacketType.CONNECT, _connect),
    packets.Connack: (PacketType.CONNACK, _connack),
    packets.Puback: (PacketType.PUBACK, _publish_answer(PacketType.PUBACK)),
    packets.Pubrec: (PacketType.PUBREC, _publish_answer(PacketType.PUBREC)),
    packets.Pubrel: (PacketType.PUBREL, _publish_answer(PacketType.PUBREL)),
    packets.Pubcomp: (PacketType.PUBCOMP, _publish_answer(PacketType.PUBCOMP)),
    packets.Subscribe: (PacketType.SUBSCRIBE, _subscribe),
    packets.Suback: (PacketType.SUBACK, _suback),
    packets.Unsubscribe: (PacketType.UNSUBSCRIBE, _unsubscribe),
    packets.Unsuback: (PacketType.UNSUBACK, _unsuback),
    packets.Pingreq: (PacketType.PINGREQ, _ping),
    packets.Pingresp: (PacketType.PINGRESP, _ping),
    packets.Disconnect: (PacketType.DISCONNECT, _disconnect),
    packets.Auth: (PacketType.AUTH, _auth),
}

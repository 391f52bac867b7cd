"""A frame to its packet, in MQTT 3.1, 3.1.1 and 5.0, both directions. MQTT 5.0, chapters 2 and 3.

Faults that one packet alone shows are refused here. The session checks the order of packets, which side may send what,
quotas, aliases, and topic filters, as a SUBACK can refuse one filter and grant the others."""
# compiled: warm

from collections.abc import Callable, Mapping
from typing import Final

from rumq.mqtt import packets
from rumq.mqtt.connect import decode_connect
from rumq.mqtt.errors import MalformedPacket, ProtocolViolation, TopicNameInvalid
from rumq.mqtt.packet_types import FLAGS, PacketType
from rumq.mqtt.packets import Packet
from rumq.mqtt.properties import Properties, decode_properties
from rumq.mqtt.reasons import CONNACK_RETURN_CODES, REASONS_IN, SUBACK_RETURN_CODES, Reason
from rumq.mqtt.topics import SHARE_PREFIX, has_wildcard
from rumq.mqtt.wire import Fields

FILTERS_MAX: Final = 2**28  # more than fit into a packet


def decode(first_byte: int, body: bytes, version: int) -> Packet:
    """The packet of one frame.

    first_byte, body: as `frames` cuts them
    version: 3, 4 or 5, as the connection's CONNECT said; it does not matter for CONNECT itself
    raises:  MalformedPacket, ProtocolViolation, UnsupportedVersion, TopicNameInvalid, or an MqttFault with
             the reason code that the standard names
    """
    if first_byte >> 4 == PacketType.CONNECT:
        return decode_connect(first_byte, body)
    if first_byte >> 4 == PacketType.PUBLISH:
        return _publish(first_byte, body, version)
    packet_type = _packet_type(first_byte, version)
    fields = Fields(body)
    packet = _DECODERS[packet_type](fields, version)
    fields.finish()
    return packet


def _packet_type(first_byte: int, version: int) -> PacketType:
    number, flags = first_byte >> 4, first_byte & 0x0F
    if number == 0 or (number == PacketType.AUTH and version < 5):
        raise MalformedPacket(f"packet type {number} is reserved")
    packet_type = PacketType(number)
    # MQTT 3.1 reserves no flags: clients set DUP on SUBSCRIBE and PUBREL, and the rest is "not used".
    if flags != FLAGS[packet_type] and version > 3:
        raise MalformedPacket(f"the flags of {packet_type.name} are 0x{flags:X}, and must be {FLAGS[packet_type]}")
    return packet_type


def _publish(first_byte: int, body: bytes, version: int) -> packets.Publish:
    fields = Fields(body)
    qos, dup = first_byte >> 1 & 3, bool(first_byte & 8)
    if qos == 3:
        raise MalformedPacket("a PUBLISH of QoS 3")
    if dup and qos == 0 and version > 3:
        raise MalformedPacket("a PUBLISH of QoS 0 with DUP set")
    topic = fields.string("topic")
    if has_wildcard(topic):
        raise TopicNameInvalid("the topic of a PUBLISH has a wildcard")
    packet_id = _packet_id(fields, "PUBLISH") if qos else None
    properties = _properties(fields, PacketType.PUBLISH, version)
    if not topic and "topic_alias" not in properties:
        raise ProtocolViolation("a PUBLISH with an empty topic and no topic alias")
    return packets.Publish(topic, fields.rest(), qos, bool(first_byte & 1), dup, packet_id, properties)


def _connack(fields: Fields, version: int) -> packets.Connack:
    # A server of 3.1.1 refuses a client of 5 in its own words, which 5 kept free for this.
    if version == 5 and fields.body == b"\x00\x01":
        fields.rest()
        return packets.Connack(False, Reason.UNSUPPORTED_PROTOCOL_VERSION)
    flags = fields.byte("acknowledge flags")
    if version == 3:
        flags = 0  # "reserved, not used" there
    if flags > 1:
        raise MalformedPacket("a CONNACK with reserved acknowledge flags set")
    if version == 5:
        reason = _reason(fields, PacketType.CONNACK)
    else:
        code = fields.byte("return code")
        if code >= len(CONNACK_RETURN_CODES):
            raise ProtocolViolation(f"a CONNACK with the reserved return code {code}")
        reason = CONNACK_RETURN_CODES[code]
    if flags and reason != Reason.SUCCESS:
        raise ProtocolViolation("a CONNACK that refuses and says that a session is present")
    return packets.Connack(bool(flags), reason, _properties(fields, PacketType.CONNACK, version))


_Answer = type[packets.Puback] | type[packets.Pubrec] | type[packets.Pubrel] | type[packets.Pubcomp]


def _publish_answer(packet_type: PacketType, answer: _Answer) -> Callable[[Fields, int], Packet]:
    """PUBACK, PUBREC, PUBREL and PUBCOMP look the same."""

    def take(fields: Fields, version: int) -> Packet:
        packet_id = _packet_id(fields, packet_type.name)
        if version < 5 or not fields:
            return answer(packet_id)
        reason = _reason(fields, packet_type)
        # 3.4.2.2.1: below a remaining length of 4 there is no property length.
        properties = decode_properties(fields, packet_type) if fields else Properties()
        return answer(packet_id, reason, properties)

    return take


class FilterList:
    """A SUBSCRIBE or an UNSUBSCRIBE whose filters are taken piece by piece, for one packet may have a million.

    raises: as `decode`, each fault when it is come to
    """

    def __init__(self, fields: Fields, packet_type: PacketType, version: int) -> None:
        self.packet_type, self._fields, self._version = packet_type, fields, version
        self.packet_id = _packet_id(fields, packet_type.name)
        self.properties = _properties(fields, packet_type, version)
        if not fields:
            article = "a" if packet_type is PacketType.SUBSCRIBE else "an"
            raise ProtocolViolation(f"{article} {packet_type.name} without a topic filter")

    def __bool__(self) -> bool:
        """Whether any filter is left."""
        return bool(self._fields)

    def subscriptions(self, count: int = FILTERS_MAX) -> tuple[packets.SubscriptionRequest, ...]:
        """The next filters of a SUBSCRIBE, `count` at most."""
        fields = self._fields
        taken: list[packets.SubscriptionRequest] = []
        while fields and len(taken) < count:
            topic_filter = fields.string("topic filter")
            taken.append(_subscription(topic_filter, fields.byte("subscription options"), self._version))
        return tuple(taken)

    def filters(self, count: int = FILTERS_MAX) -> tuple[str, ...]:
        """The next filters of an UNSUBSCRIBE, `count` at most."""
        taken: list[str] = []
        while self._fields and len(taken) < count:
            taken.append(self._fields.string("topic filter"))
        return tuple(taken)


def filter_list(first_byte: int, body: bytes, version: int) -> FilterList:
    """A SUBSCRIBE or an UNSUBSCRIBE as `decode` takes it, but for its filters."""
    return FilterList(Fields(body), _packet_type(first_byte, version), version)


def _subscribe(fields: Fields, version: int) -> packets.Subscribe:
    asked = FilterList(fields, PacketType.SUBSCRIBE, version)
    return packets.Subscribe(asked.packet_id, asked.subscriptions(), asked.properties)


def _subscription(topic_filter: str, options: int, version: int) -> packets.SubscriptionRequest:
    qos = options & 3
    if version < 5:
        if qos == 3 or (version == 4 and options > 3):
            raise MalformedPacket(f"a SUBSCRIBE with the requested QoS 0x{options:02X}")
        return packets.SubscriptionRequest(topic_filter, qos)
    no_local, retain_as_published, retain_handling = bool(options & 4), bool(options & 8), options >> 4 & 3
    if options & 0xC0:
        raise MalformedPacket("a SUBSCRIBE with reserved subscription options set")
    if qos == 3:
        raise ProtocolViolation("a SUBSCRIBE of QoS 3")
    if retain_handling == 3:
        raise ProtocolViolation("a SUBSCRIBE with retain handling 3")
    if no_local and topic_filter.startswith(SHARE_PREFIX):
        raise ProtocolViolation("a shared subscription with no local set")
    return packets.SubscriptionRequest(topic_filter, qos, no_local, retain_as_published, retain_handling)


def _suback(fields: Fields, version: int) -> packets.Suback:
    packet_id = _packet_id(fields, "SUBACK")
    properties = _properties(fields, PacketType.SUBACK, version)
    reasons = []
    while fields:
        reason = _reason(fields, PacketType.SUBACK)
        if version < 5 and reason not in SUBACK_RETURN_CODES:
            raise ProtocolViolation(f"a SUBACK with the reserved return code 0x{reason:02X}")
        reasons.append(reason)
    if not reasons:
        raise ProtocolViolation("a SUBACK without a reason code")
    return packets.Suback(packet_id, tuple(reasons), properties)


def _unsubscribe(fields: Fields, version: int) -> packets.Unsubscribe:
    asked = FilterList(fields, PacketType.UNSUBSCRIBE, version)
    return packets.Unsubscribe(asked.packet_id, asked.filters(), asked.properties)


def _unsuback(fields: Fields, version: int) -> packets.Unsuback:
    packet_id = _packet_id(fields, "UNSUBACK")
    if version < 5:
        return packets.Unsuback(packet_id)
    properties = decode_properties(fields, PacketType.UNSUBACK)
    reasons = []
    while fields:
        reasons.append(_reason(fields, PacketType.UNSUBACK))
    if not reasons:
        raise ProtocolViolation("an UNSUBACK without a reason code")
    return packets.Unsuback(packet_id, tuple(reasons), properties)


def _disconnect(fields: Fields, version: int) -> packets.Disconnect:
    if version < 5 or not fields:
        return packets.Disconnect()
    reason = _reason(fields, PacketType.DISCONNECT)
    # 3.14.2.2.1: below a remaining length of 2 there is no property length.
    properties = decode_properties(fields, PacketType.DISCONNECT) if fields else Properties()
    return packets.Disconnect(reason, properties)


def _auth(fields: Fields, version: int) -> packets.Auth:
    if not fields:  # 3.15.2.1: success, and the method that 3.15.2.2.2 asks for may be left out with the rest
        return packets.Auth()
    reason = _reason(fields, PacketType.AUTH)
    properties = decode_properties(fields, PacketType.AUTH)
    if "authentication_method" not in properties:
        raise ProtocolViolation("an AUTH without an authentication method")
    return packets.Auth(reason, properties)


def _packet_id(fields: Fields, packet: str) -> int:
    packet_id = fields.two_bytes("packet identifier")
    if packet_id == 0:
        raise ProtocolViolation(f"a packet identifier of 0 in {packet}")
    return packet_id


def _properties(fields: Fields, packet_type: PacketType, version: int) -> Properties:
    return decode_properties(fields, packet_type) if version == 5 else Properties()


def _reason(fields: Fields, packet_type: PacketType) -> Reason:
    code = fields.byte("reason code")
    reason = _REASONS[packet_type].get(code)
    if reason is None:
        raise ProtocolViolation(f"the reason code 0x{code:02X} does not belong in {packet_type.name}")
    return reason


_REASONS: Final = {
    packet_type: {int(reason): reason for reason in reasons} for packet_type, reasons in REASONS_IN.items()
}

_DECODERS: Final[Mapping[PacketType, Callable[[Fields, int], Packet]]] = {
    PacketType.CONNACK: _connack,
    PacketType.PUBACK: _publish_answer(PacketType.PUBACK, packets.Puback),
    PacketType.PUBREC: _publish_answer(PacketType.PUBREC, packets.Pubrec),
    PacketType.PUBREL: _publish_answer(PacketType.PUBREL, packets.Pubrel),
    PacketType.PUBCOMP: _publish_answer(PacketType.PUBCOMP, packets.Pubcomp),
    PacketType.SUBSCRIBE: _subscribe,
    PacketType.SUBACK: _suback,
    PacketType.UNSUBSCRIBE: _unsubscribe,
    PacketType.UNSUBACK: _unsuback,
    PacketType.PINGREQ: lambda fields, version: packets.Pingreq(),
    PacketType.PINGRESP: lambda fields, version: packets.Pingresp(),
    PacketType.DISCONNECT: _disconnect,
    PacketType.AUTH: _auth,
}

"""The properties of MQTT 5: number, type, limits, packets; decoding and encoding. MQTT 5.0, 2.2.2.

Faults of a peer's properties are MqttFaults; properties of ours that cannot be sent, ValueErrors. Rules on several
properties together belong to the decoder of the packet."""

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, Final, NamedTuple, TypedDict, cast

from rumq.mqtt.errors import MalformedPacket, MqttFault, PacketTooLarge, ProtocolViolation
from rumq.mqtt.packet_types import PacketType
from rumq.mqtt.reasons import Reason
from rumq.mqtt.wire import (
    Fields,
    write_binary,
    write_integer,
    write_pair,
    write_string,
    write_variable_integer,
)


class Properties(TypedDict, total=False):
    """The properties of one packet or will by their standard's names; absent is not the same as a default.

    Times are in seconds, sizes in bytes. user_properties keep their order and may repeat a name.
    subscription_identifiers: one in a SUBSCRIBE; in a PUBLISH one for each subscription that matched.
    """

    payload_format_indicator: int
    message_expiry_interval: int
    content_type: str
    response_topic: str
    correlation_data: bytes
    subscription_identifiers: list[int]
    session_expiry_interval: int
    assigned_client_identifier: str
    server_keep_alive: int
    authentication_method: str
    authentication_data: bytes
    request_problem_information: bool
    will_delay_interval: int
    request_response_information: bool
    response_information: str
    server_reference: str
    reason_string: str
    receive_maximum: int
    topic_alias_maximum: int
    topic_alias: int
    maximum_qos: int
    retain_available: bool
    user_properties: list[tuple[str, str]]
    maximum_packet_size: int
    wildcard_subscription_available: bool
    subscription_identifier_available: bool
    shared_subscription_available: bool


class WireType(Enum):
    """How a value is written. MQTT 5.0, 2.2.2.2; FLAG is a byte that must be 0 or 1."""

    FLAG = "flag"
    BYTE = "byte"
    TWO_BYTES = "two byte integer"
    FOUR_BYTES = "four byte integer"
    VARIABLE = "variable byte integer"
    STRING = "UTF-8 string"
    BINARY = "binary data"
    PAIR = "UTF-8 string pair"


_TAKE: Final[Mapping[WireType, Callable[[Fields, str], Any]]] = {
    WireType.FLAG: Fields.byte,
    WireType.BYTE: Fields.byte,
    WireType.TWO_BYTES: Fields.two_bytes,
    WireType.FOUR_BYTES: Fields.four_bytes,
    WireType.VARIABLE: Fields.variable_integer,
    WireType.STRING: Fields.string,
    WireType.BINARY: Fields.binary,
    WireType.PAIR: Fields.pair,
}
_WRITE: Final[Mapping[WireType, Callable[[Any], bytes]]] = {
    WireType.FLAG: lambda value: write_integer(value, 1),
    WireType.BYTE: lambda value: write_integer(value, 1),
    WireType.TWO_BYTES: lambda value: write_integer(value, 2),
    WireType.FOUR_BYTES: lambda value: write_integer(value, 4),
    WireType.VARIABLE: write_variable_integer,
    WireType.STRING: write_string,
    WireType.BINARY: write_binary,
    WireType.PAIR: write_pair,
}

WILL: Final = 0
"""The place of a will's properties, which ride inside CONNECT; no packet type has the number 0."""

_CONNECT, _CONNACK, _PUBLISH = PacketType.CONNECT, PacketType.CONNACK, PacketType.PUBLISH
_SUBSCRIBE, _DISCONNECT, _AUTH = PacketType.SUBSCRIBE, PacketType.DISCONNECT, PacketType.AUTH
_MESSAGE = (_PUBLISH, WILL)
_ANSWERS = (
    *(_CONNACK, PacketType.PUBACK, PacketType.PUBREC, PacketType.PUBREL, PacketType.PUBCOMP),
    *(PacketType.SUBACK, PacketType.UNSUBACK, _DISCONNECT, _AUTH),
)
_EVERYWHERE = (*_ANSWERS, *_MESSAGE, _CONNECT, _SUBSCRIBE, PacketType.UNSUBSCRIBE)
_SINGULAR = {"user_properties": "user property", "subscription_identifiers": "subscription identifier"}
_ZERO_OR_ONE = range(2)
_NOT_ZERO = range(1, 2**32)


class Property(NamedTuple):
    """One line of the standard's table 2-4. name: its key in `Properties`; places: packet types, or WILL."""

    identifier: int
    name: str
    wire: WireType
    places: tuple[int, ...]
    values: range | None = None  # None: whatever the type can hold
    repeats_in: tuple[int, ...] | None = None  # where it may repeat; not None: a list everywhere
    reason: Reason = Reason.PROTOCOL_ERROR  # the answer to a value outside `values`

    @property
    def words(self) -> str:
        """The name of one of them, for a sentence."""
        return _SINGULAR.get(self.name) or self.name.replace("_", " ")

    def maybe_problem(self, value: Any) -> str | None:
        """Why `value`, of the right type, may not be sent."""
        if self.values is not None and value not in self.values:
            return f"{value} is not allowed"
        if self.name == "response_topic":
            if not value:
                return "it is empty"
            if "#" in value or "+" in value:
                return "it has a wildcard"
        return None


PROPERTIES: Final = (
    Property(0x01, "payload_format_indicator", WireType.BYTE, _MESSAGE, _ZERO_OR_ONE),
    Property(0x02, "message_expiry_interval", WireType.FOUR_BYTES, _MESSAGE),
    Property(0x03, "content_type", WireType.STRING, _MESSAGE),
    Property(0x08, "response_topic", WireType.STRING, _MESSAGE),
    Property(0x09, "correlation_data", WireType.BINARY, _MESSAGE),
    Property(0x0B, "subscription_identifiers", WireType.VARIABLE, (_PUBLISH, _SUBSCRIBE), _NOT_ZERO, (_PUBLISH,)),
    Property(0x11, "session_expiry_interval", WireType.FOUR_BYTES, (_CONNECT, _CONNACK, _DISCONNECT)),
    Property(0x12, "assigned_client_identifier", WireType.STRING, (_CONNACK,)),
    Property(0x13, "server_keep_alive", WireType.TWO_BYTES, (_CONNACK,)),
    Property(0x15, "authentication_method", WireType.STRING, (_CONNECT, _CONNACK, _AUTH)),
    Property(0x16, "authentication_data", WireType.BINARY, (_CONNECT, _CONNACK, _AUTH)),
    Property(0x17, "request_problem_information", WireType.FLAG, (_CONNECT,), _ZERO_OR_ONE),
    Property(0x18, "will_delay_interval", WireType.FOUR_BYTES, (WILL,)),
    Property(0x19, "request_response_information", WireType.FLAG, (_CONNECT,), _ZERO_OR_ONE),
    Property(0x1A, "response_information", WireType.STRING, (_CONNACK,)),
    Property(0x1C, "server_reference", WireType.STRING, (_CONNACK, _DISCONNECT)),
    Property(0x1F, "reason_string", WireType.STRING, _ANSWERS),
    Property(0x21, "receive_maximum", WireType.TWO_BYTES, (_CONNECT, _CONNACK), _NOT_ZERO),
    Property(0x22, "topic_alias_maximum", WireType.TWO_BYTES, (_CONNECT, _CONNACK)),
    Property(0x23, "topic_alias", WireType.TWO_BYTES, (_PUBLISH,), _NOT_ZERO, reason=Reason.TOPIC_ALIAS_INVALID),
    Property(0x24, "maximum_qos", WireType.BYTE, (_CONNACK,), _ZERO_OR_ONE),
    Property(0x25, "retain_available", WireType.FLAG, (_CONNACK,), _ZERO_OR_ONE),
    Property(0x26, "user_properties", WireType.PAIR, _EVERYWHERE, repeats_in=_EVERYWHERE),
    Property(0x27, "maximum_packet_size", WireType.FOUR_BYTES, (_CONNECT, _CONNACK), _NOT_ZERO),
    Property(0x28, "wildcard_subscription_available", WireType.FLAG, (_CONNACK,), _ZERO_OR_ONE),
    Property(0x29, "subscription_identifier_available", WireType.FLAG, (_CONNACK,), _ZERO_OR_ONE),
    Property(0x2A, "shared_subscription_available", WireType.FLAG, (_CONNACK,), _ZERO_OR_ONE),
)

BY_IDENTIFIER: Final[Mapping[int, Property]] = {prop.identifier: prop for prop in PROPERTIES}
BY_NAME: Final[Mapping[str, Property]] = {prop.name: prop for prop in PROPERTIES}


# Read before it is known who sends them.
OF_ANYBODY: Final = (PacketType.CONNECT, WILL, PacketType.AUTH, PacketType.DISCONNECT)
USER_PROPERTY: Final = 0x26
COUNT_MAX, BYTES_MAX = 128, 1 << 16  # of the properties of such a packet: each costs about 10 µs


def decode_properties(fields: Fields, place: int) -> Properties:
    """Take the property length and the properties it covers.

    place:  the PacketType they stand in, or WILL
    raises: MalformedPacket for a property that is unknown, cut short, or does not belong in `place`;
            ProtocolViolation for one that repeats or has a forbidden value; 0x94 for topic alias 0;
            0x97 for more than COUNT_MAX, 0x95 for more than BYTES_MAX in a packet that anybody may send
    """
    part = fields.part("properties")
    is_anybody = place in OF_ANYBODY
    size = part.end - part.at
    if is_anybody and size > BYTES_MAX:
        raise PacketTooLarge(f"{size} bytes of properties in {_place_name(place)}, the limit is {BYTES_MAX}")
    count = 0
    found: dict[str, Any] = {}
    while part:
        count += 1
        if is_anybody and count > COUNT_MAX:
            raise MqttFault(f"more than {COUNT_MAX} properties in {_place_name(place)}", Reason.QUOTA_EXCEEDED)
        identifier = part.variable_integer("property identifier")
        if identifier == USER_PROPERTY:  # it may be anywhere, as often as wanted, with any value
            found.setdefault("user_properties", []).append(part.pair("user property"))
            continue
        prop = BY_IDENTIFIER.get(identifier)
        if prop is None:
            raise MalformedPacket(f"there is no property 0x{identifier:02X}")
        words = prop.words
        if place not in prop.places:
            raise MalformedPacket(f"the property {words} does not belong in {_place_name(place)}")
        value = _TAKE[prop.wire](part, words)
        if (problem := prop.maybe_problem(value)) is not None:
            raise _value_fault(prop, f"the {words} of {_place_name(place)}: {problem}")
        if prop.name in found and (prop.repeats_in is None or place not in prop.repeats_in):
            raise ProtocolViolation(f"the {words} of {_place_name(place)} may be given once only")
        if prop.repeats_in is not None:
            found.setdefault(prop.name, []).append(value)
        else:
            found[prop.name] = bool(value) if prop.wire is WireType.FLAG else value
    return cast(Properties, found)


def encode_properties(properties: Properties, place: int) -> bytes:
    """The property length and the properties, in the order of the dict.

    raises: ValueError for what `place` may not carry: our bug, not the peer's
    """
    if not properties:
        return b"\0"
    out = bytearray()
    for name, given in properties.items():
        prop = BY_NAME.get(name)
        if prop is None or place not in prop.places:
            raise ValueError(f"there is no property {name} in {_place_name(place)}")
        values = cast(list[Any], given) if prop.repeats_in is not None else [given]
        if len(values) > 1 and prop.repeats_in is not None and place not in prop.repeats_in:
            raise ValueError(f"{name} of {_place_name(place)} may be given once only")
        write = _WRITE[prop.wire]
        for value in values:
            if (problem := prop.maybe_problem(value)) is not None:
                raise ValueError(f"{name} of {_place_name(place)}: {problem}")
            out += write_variable_integer(prop.identifier) + write(value)
    return write_variable_integer(len(out)) + out


def _value_fault(prop: Property, message: str) -> MqttFault:
    if prop.reason is Reason.PROTOCOL_ERROR:
        return ProtocolViolation(message)
    return MqttFault(message, prop.reason)


def _place_name(place: int) -> str:
    return "a will" if place == WILL else PacketType(place).name

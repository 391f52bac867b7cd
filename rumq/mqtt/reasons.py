"""The reason codes of MQTT 5: in which packets they may be, their texts, and their CONNACK return codes before 5.

MQTT 5.0, 2.4 and the table of each packet; MQTT 3.1.1, 3.2.2.3."""

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Final

from rumq.mqtt.packet_types import PacketType


class Reason(IntEnum):
    """Why something went as it did; below 0x80 it went well. 0x00 has three names, by its packet."""

    SUCCESS = 0x00
    NORMAL_DISCONNECTION = 0x00
    GRANTED_QOS_0 = 0x00
    GRANTED_QOS_1 = 0x01
    GRANTED_QOS_2 = 0x02
    DISCONNECT_WITH_WILL_MESSAGE = 0x04
    NO_MATCHING_SUBSCRIBERS = 0x10
    NO_SUBSCRIPTION_EXISTED = 0x11
    CONTINUE_AUTHENTICATION = 0x18
    RE_AUTHENTICATE = 0x19
    UNSPECIFIED_ERROR = 0x80
    MALFORMED_PACKET = 0x81
    PROTOCOL_ERROR = 0x82
    IMPLEMENTATION_SPECIFIC_ERROR = 0x83
    UNSUPPORTED_PROTOCOL_VERSION = 0x84
    CLIENT_IDENTIFIER_NOT_VALID = 0x85
    BAD_USER_NAME_OR_PASSWORD = 0x86
    NOT_AUTHORIZED = 0x87
    SERVER_UNAVAILABLE = 0x88
    SERVER_BUSY = 0x89
    BANNED = 0x8A
    SERVER_SHUTTING_DOWN = 0x8B
    BAD_AUTHENTICATION_METHOD = 0x8C
    KEEP_ALIVE_TIMEOUT = 0x8D
    SESSION_TAKEN_OVER = 0x8E
    TOPIC_FILTER_INVALID = 0x8F
    TOPIC_NAME_INVALID = 0x90
    PACKET_IDENTIFIER_IN_USE = 0x91
    PACKET_IDENTIFIER_NOT_FOUND = 0x92
    RECEIVE_MAXIMUM_EXCEEDED = 0x93
    TOPIC_ALIAS_INVALID = 0x94
    PACKET_TOO_LARGE = 0x95
    MESSAGE_RATE_TOO_HIGH = 0x96
    QUOTA_EXCEEDED = 0x97
    ADMINISTRATIVE_ACTION = 0x98
    PAYLOAD_FORMAT_INVALID = 0x99
    RETAIN_NOT_SUPPORTED = 0x9A
    QOS_NOT_SUPPORTED = 0x9B
    USE_ANOTHER_SERVER = 0x9C
    SERVER_MOVED = 0x9D
    SHARED_SUBSCRIPTIONS_NOT_SUPPORTED = 0x9E
    CONNECTION_RATE_EXCEEDED = 0x9F
    MAXIMUM_CONNECT_TIME = 0xA0
    SUBSCRIPTION_IDENTIFIERS_NOT_SUPPORTED = 0xA1
    WILDCARD_SUBSCRIPTIONS_NOT_SUPPORTED = 0xA2

    @property
    def text(self) -> str:
        """One line for people: what the code means."""
        return _TEXTS[self]

    @property
    def is_error(self) -> bool:
        return self >= 0x80


_CONNACK, _DISCONNECT, _AUTH = PacketType.CONNACK, PacketType.DISCONNECT, PacketType.AUTH
_PUBACK, _PUBREC, _PUBREL, _PUBCOMP = (
    PacketType.PUBACK,
    PacketType.PUBREC,
    PacketType.PUBREL,
    PacketType.PUBCOMP,
)
_SUBACK, _UNSUBACK = PacketType.SUBACK, PacketType.UNSUBACK
_TO_PUBLISH = (_PUBACK, _PUBREC)
_TO_ANY_REQUEST = (_PUBACK, _PUBREC, _SUBACK, _UNSUBACK)

_TABLE: Final[tuple[tuple[Reason, str, tuple[PacketType, ...]], ...]] = (
    (
        Reason.SUCCESS,
        "success",
        (_CONNACK, *_TO_ANY_REQUEST, _PUBREL, _PUBCOMP, _DISCONNECT, _AUTH),
    ),
    (Reason.GRANTED_QOS_1, "granted, QoS 1 at most", (_SUBACK,)),
    (Reason.GRANTED_QOS_2, "granted, QoS 2 at most", (_SUBACK,)),
    (Reason.DISCONNECT_WITH_WILL_MESSAGE, "leaving, publish the will", (_DISCONNECT,)),
    (Reason.NO_MATCHING_SUBSCRIBERS, "accepted, nobody subscribes to it", _TO_PUBLISH),
    (Reason.NO_SUBSCRIPTION_EXISTED, "there was no such subscription", (_UNSUBACK,)),
    (Reason.CONTINUE_AUTHENTICATION, "continue with the next step of authentication", (_AUTH,)),
    (Reason.RE_AUTHENTICATE, "authenticate again", (_AUTH,)),
    (Reason.UNSPECIFIED_ERROR, "error, no more is said", (_CONNACK, *_TO_ANY_REQUEST, _DISCONNECT)),
    (Reason.MALFORMED_PACKET, "malformed packet", (_CONNACK, _DISCONNECT)),
    (Reason.PROTOCOL_ERROR, "protocol error", (_CONNACK, _DISCONNECT)),
    (
        Reason.IMPLEMENTATION_SPECIFIC_ERROR,
        "valid, but not accepted by this implementation",
        (_CONNACK, *_TO_ANY_REQUEST, _DISCONNECT),
    ),
    (Reason.UNSUPPORTED_PROTOCOL_VERSION, "unsupported protocol version", (_CONNACK,)),
    (Reason.CLIENT_IDENTIFIER_NOT_VALID, "client identifier not valid", (_CONNACK,)),
    (Reason.BAD_USER_NAME_OR_PASSWORD, "bad user name or password", (_CONNACK,)),
    (Reason.NOT_AUTHORIZED, "not authorized", (_CONNACK, *_TO_ANY_REQUEST, _DISCONNECT)),
    (Reason.SERVER_UNAVAILABLE, "server unavailable", (_CONNACK,)),
    (Reason.SERVER_BUSY, "server busy, try again later", (_CONNACK, _DISCONNECT)),
    (Reason.BANNED, "banned by an administrator", (_CONNACK,)),
    (Reason.SERVER_SHUTTING_DOWN, "server shutting down", (_DISCONNECT,)),
    # 2.4 lists DISCONNECT for this one, the table of 3.14.2.1 does not: accept it in both.
    (Reason.BAD_AUTHENTICATION_METHOD, "bad authentication method", (_CONNACK, _DISCONNECT)),
    (Reason.KEEP_ALIVE_TIMEOUT, "nothing received for one and a half keep alives", (_DISCONNECT,)),
    (Reason.SESSION_TAKEN_OVER, "another connection took the session over", (_DISCONNECT,)),
    (Reason.TOPIC_FILTER_INVALID, "topic filter not accepted", (_SUBACK, _UNSUBACK, _DISCONNECT)),
    (Reason.TOPIC_NAME_INVALID, "topic name not accepted", (_CONNACK, *_TO_PUBLISH, _DISCONNECT)),
    (Reason.PACKET_IDENTIFIER_IN_USE, "packet identifier already in use", _TO_ANY_REQUEST),
    (Reason.PACKET_IDENTIFIER_NOT_FOUND, "packet identifier not known", (_PUBREL, _PUBCOMP)),
    (
        Reason.RECEIVE_MAXIMUM_EXCEEDED,
        "more unacknowledged publishes than the receive maximum",
        (_DISCONNECT,),
    ),
    (Reason.TOPIC_ALIAS_INVALID, "topic alias 0 or above the maximum", (_DISCONNECT,)),
    (Reason.PACKET_TOO_LARGE, "packet too large", (_CONNACK, _DISCONNECT)),
    (Reason.MESSAGE_RATE_TOO_HIGH, "message rate too high", (_DISCONNECT,)),
    (Reason.QUOTA_EXCEEDED, "quota exceeded", (_CONNACK, *_TO_PUBLISH, _SUBACK, _DISCONNECT)),
    (Reason.ADMINISTRATIVE_ACTION, "closed by an administrator", (_DISCONNECT,)),
    (
        Reason.PAYLOAD_FORMAT_INVALID,
        "payload is not what its format indicator says",
        (_CONNACK, *_TO_PUBLISH, _DISCONNECT),
    ),
    (Reason.RETAIN_NOT_SUPPORTED, "retained messages not supported", (_CONNACK, _DISCONNECT)),
    (Reason.QOS_NOT_SUPPORTED, "QoS above the maximum", (_CONNACK, _DISCONNECT)),
    (Reason.USE_ANOTHER_SERVER, "use another server for now", (_CONNACK, _DISCONNECT)),
    (Reason.SERVER_MOVED, "use another server from now on", (_CONNACK, _DISCONNECT)),
    (
        Reason.SHARED_SUBSCRIPTIONS_NOT_SUPPORTED,
        "shared subscriptions not supported",
        (_SUBACK, _DISCONNECT),
    ),
    (Reason.CONNECTION_RATE_EXCEEDED, "too many connections in too short a time", (_CONNACK, _DISCONNECT)),
    (Reason.MAXIMUM_CONNECT_TIME, "connected for as long as is allowed", (_DISCONNECT,)),
    (
        Reason.SUBSCRIPTION_IDENTIFIERS_NOT_SUPPORTED,
        "subscription identifiers not supported",
        (_SUBACK, _DISCONNECT),
    ),
    (
        Reason.WILDCARD_SUBSCRIPTIONS_NOT_SUPPORTED,
        "wildcard subscriptions not supported",
        (_SUBACK, _DISCONNECT),
    ),
)

_TEXTS: Final = {reason: text for reason, text, _ in _TABLE}

REASONS_IN: Final[Mapping[PacketType, frozenset[Reason]]] = MappingProxyType(
    {
        packet_type: frozenset(reason for reason, _, places in _TABLE if packet_type in places)
        for packet_type in (_CONNACK, *_TO_ANY_REQUEST, _PUBREL, _PUBCOMP, _DISCONNECT, _AUTH)
    }
)
"""Which reason codes each packet of MQTT 5 may carry."""

SUBACK_RETURN_CODES: Final = frozenset(
    {Reason.GRANTED_QOS_0, Reason.GRANTED_QOS_1, Reason.GRANTED_QOS_2, Reason.UNSPECIFIED_ERROR}
)
"""What SUBACK may carry in MQTT 3.1.1: three grants, and 0x80 for every failure."""

CONNACK_RETURN_CODES: Final = (
    Reason.SUCCESS,
    Reason.UNSUPPORTED_PROTOCOL_VERSION,
    Reason.CLIENT_IDENTIFIER_NOT_VALID,
    Reason.SERVER_UNAVAILABLE,
    Reason.BAD_USER_NAME_OR_PASSWORD,
    Reason.NOT_AUTHORIZED,
)
"""What the CONNACK return codes 0 to 5 of MQTT 3.1 and 3.1.1 mean."""

_RETURN_CODES: Final = {reason: code for code, reason in enumerate(CONNACK_RETURN_CODES)} | {
    Reason.BANNED: 5,
    Reason.BAD_AUTHENTICATION_METHOD: 5,
    Reason.UNSPECIFIED_ERROR: 3,
    Reason.IMPLEMENTATION_SPECIFIC_ERROR: 3,
    Reason.SERVER_BUSY: 3,
    Reason.QUOTA_EXCEEDED: 3,
    Reason.USE_ANOTHER_SERVER: 3,
    Reason.SERVER_MOVED: 3,
    Reason.CONNECTION_RATE_EXCEEDED: 3,
}


def maybe_connack_return_code(reason: Reason) -> int | None:
    """The CONNACK return code of MQTT 3.1 and 3.1.1 for `reason`.

    None: no return code fits, so the connection is closed without a CONNACK. MQTT 3.1.1, [MQTT-3.2.2-6].
    """
    return _RETURN_CODES.get(reason)

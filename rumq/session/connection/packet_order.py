"""Which packet a client may send when, and what becomes of any other: one table, as h11 has for HTTP.

MQTT 5.0, 3.1.0-1 and -2 (CONNECT comes first and once), 3.14 (nothing after DISCONNECT), 4.12 (only AUTH and DISCONNECT
while authentication goes on), 4.12.1 (re-authentication), 4.3.3 (QoS 2). `check` and `check_auth` hold packets to it;
the QoS tables are specifications of the kernels (`rumq.mqtt.kernels`), which a test walks."""

from __future__ import annotations

from enum import Enum, auto
from typing import Final, NamedTuple

from rumq.mqtt.errors import ProtocolViolation
from rumq.mqtt.packet_types import PacketType
from rumq.mqtt.reasons import Reason


class State(Enum):
    """Of one connection."""

    AWAITING_CONNECT = auto()
    VERIFYING = auto()  # a thread checks who the client is
    CHALLENGED = auto()  # the client was sent AUTH and is to answer it
    CONNECTED = auto()
    CONNECTED_BY_METHOD = auto()  # by enhanced authentication: it may authenticate again
    REVERIFYING = auto()  # re-authentication: a thread checks
    RECHALLENGED = auto()  # re-authentication: the client is to answer
    PAUSED = auto()  # connected, and a packet waits for another shard or for its next turn


class OrderRule(Enum):
    ACCEPT = auto()
    WAIT = auto()  # it is not read before the state changes
    LEAVE = auto()  # the connection ends without an answer and without a will


class Refuse(NamedTuple):
    """A protocol error, 0x82. why: for the operator and the client; {} stands for the packet"""

    why: str


Action = OrderRule | Refuse
ACCEPT, WAIT, LEAVE = OrderRule
UNASKED = Refuse("{} that nothing was asked for")
IN_THE_MIDDLE = Refuse("{} in the middle of authentication")

EVERY: Final = tuple(PacketType)
_FROM_SERVER: dict[int, Action] = dict.fromkeys(
    (PacketType.CONNACK, PacketType.SUBACK, PacketType.UNSUBACK, PacketType.PINGRESP),
    Refuse("a client sent {}"),
)
_CONNECTED: dict[int, Action] = {
    **dict.fromkeys(EVERY, ACCEPT),
    **_FROM_SERVER,
    PacketType.CONNECT: Refuse("a second CONNECT"),
}
ORDER: Final[dict[State, dict[int, Action]]] = {
    # Not answered: whoever does not begin with CONNECT may not speak MQTT at all.
    State.AWAITING_CONNECT: {
        **dict.fromkeys(EVERY, Refuse("the first packet is not CONNECT")),
        PacketType.CONNECT: ACCEPT,
    },
    State.VERIFYING: dict.fromkeys(EVERY, WAIT),
    State.CHALLENGED: {
        **dict.fromkeys(EVERY, IN_THE_MIDDLE),
        PacketType.AUTH: ACCEPT,
        PacketType.DISCONNECT: LEAVE,
    },
    State.CONNECTED: {
        **_CONNECTED,
        PacketType.AUTH: Refuse("AUTH on a connection that began without an authentication method"),
    },
    State.CONNECTED_BY_METHOD: _CONNECTED,
    State.REVERIFYING: _CONNECTED,
    State.RECHALLENGED: _CONNECTED,
    State.PAUSED: dict.fromkeys(EVERY, WAIT),
}
"""State -> packet type -> what becomes of it."""

AUTH_ORDER: Final[dict[State, dict[int, Action]]] = {
    State.CHALLENGED: {
        Reason.SUCCESS: IN_THE_MIDDLE,
        Reason.CONTINUE_AUTHENTICATION: ACCEPT,
        Reason.RE_AUTHENTICATE: IN_THE_MIDDLE,
    },
    State.CONNECTED_BY_METHOD: {
        Reason.SUCCESS: UNASKED,
        Reason.CONTINUE_AUTHENTICATION: UNASKED,
        Reason.RE_AUTHENTICATE: ACCEPT,
    },
    State.REVERIFYING: {
        Reason.SUCCESS: UNASKED,
        Reason.CONTINUE_AUTHENTICATION: UNASKED,
        Reason.RE_AUTHENTICATE: IN_THE_MIDDLE,
    },
    State.RECHALLENGED: {
        Reason.SUCCESS: UNASKED,
        Reason.CONTINUE_AUTHENTICATION: ACCEPT,
        Reason.RE_AUTHENTICATE: IN_THE_MIDDLE,
    },
}
"""The same for the reason codes of an AUTH that `ORDER` accepts."""


class Exchange(Enum):
    """Of one packet id of a message of QoS 1 or 2."""

    NONE = auto()
    AWAITS_PUBACK = auto()
    AWAITS_PUBREC = auto()
    AWAITS_PUBCOMP = auto()
    AWAITS_PUBREL = auto()  # of a message from the client


class ExchangeStep(NamedTuple):
    """What an acknowledgement brings about. answer: the broker's packet and its reason code, if it answers"""

    to: Exchange
    answer: tuple[PacketType, Reason] | None = None


_UNKNOWN = Reason.PACKET_IDENTIFIER_NOT_FOUND
_LOST_PUBREC = (PacketType.PUBREL, _UNKNOWN)
SENT_BY_BROKER: Final[dict[Exchange, dict[PacketType, ExchangeStep]]] = {
    Exchange.NONE: {
        PacketType.PUBACK: ExchangeStep(Exchange.NONE),
        PacketType.PUBREC: ExchangeStep(Exchange.NONE, _LOST_PUBREC),
        PacketType.PUBCOMP: ExchangeStep(Exchange.NONE),
    },
    Exchange.AWAITS_PUBACK: {
        PacketType.PUBACK: ExchangeStep(Exchange.NONE),
        PacketType.PUBREC: ExchangeStep(Exchange.AWAITS_PUBACK, _LOST_PUBREC),
        PacketType.PUBCOMP: ExchangeStep(Exchange.AWAITS_PUBACK),
    },
    Exchange.AWAITS_PUBREC: {
        PacketType.PUBACK: ExchangeStep(Exchange.AWAITS_PUBREC),
        PacketType.PUBREC: ExchangeStep(Exchange.AWAITS_PUBCOMP, (PacketType.PUBREL, Reason.SUCCESS)),
        PacketType.PUBCOMP: ExchangeStep(Exchange.AWAITS_PUBREC),
    },
    Exchange.AWAITS_PUBCOMP: {
        PacketType.PUBACK: ExchangeStep(Exchange.AWAITS_PUBCOMP),
        PacketType.PUBREC: ExchangeStep(Exchange.AWAITS_PUBCOMP, (PacketType.PUBREL, Reason.SUCCESS)),
        PacketType.PUBCOMP: ExchangeStep(Exchange.NONE),
    },
}
"""A message from the broker: exchange -> the client's answer of success -> what follows. MQTT 5.0, 4.3.2 and 4.3.3."""

SENT_BY_CLIENT: Final[dict[Exchange, dict[PacketType, ExchangeStep]]] = {
    Exchange.NONE: {
        PacketType.PUBLISH: ExchangeStep(Exchange.AWAITS_PUBREL, (PacketType.PUBREC, Reason.SUCCESS)),
        PacketType.PUBREL: ExchangeStep(Exchange.NONE, (PacketType.PUBCOMP, _UNKNOWN)),
    },
    Exchange.AWAITS_PUBREL: {
        PacketType.PUBLISH: ExchangeStep(Exchange.AWAITS_PUBREL, (PacketType.PUBREC, Reason.SUCCESS)),
        PacketType.PUBREL: ExchangeStep(Exchange.NONE, (PacketType.PUBCOMP, Reason.SUCCESS)),
    },
}
"""A message of QoS 2 from the client, whose PUBLISH may come again: it is stored once. MQTT 5.0, 4.3.3."""


def check(state: State, packet_type: int) -> None:
    """raises: ProtocolViolation for a packet that the table refuses"""
    action = ORDER[state][packet_type]
    if isinstance(action, Refuse):
        raise ProtocolViolation(action.why.format(PacketType(packet_type).name))


def check_auth(state: State, reason: Reason) -> None:
    """Likewise for the reason code of an AUTH."""
    action = AUTH_ORDER[state][reason]
    if isinstance(action, Refuse):
        raise ProtocolViolation(action.why.format(f"AUTH 0x{reason:02X}"))

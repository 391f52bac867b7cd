"""The fifteen packet types, and the flags that their fixed headers must carry. MQTT 5.0, 2.1.2 and 2.1.3."""

from enum import IntEnum
from typing import Final


class PacketType(IntEnum):
    """The upper four bits of a packet's first byte. 0 is forbidden; AUTH exists only in version 5."""

    CONNECT = 1
    CONNACK = 2
    PUBLISH = 3
    PUBACK = 4
    PUBREC = 5
    PUBREL = 6
    PUBCOMP = 7
    SUBSCRIBE = 8
    SUBACK = 9
    UNSUBSCRIBE = 10
    UNSUBACK = 11
    PINGREQ = 12
    PINGRESP = 13
    DISCONNECT = 14
    AUTH = 15


FLAGS: Final[dict[PacketType, int]] = {
    packet_type: 2 if packet_type in (PacketType.PUBREL, PacketType.SUBSCRIBE, PacketType.UNSUBSCRIBE) else 0
    for packet_type in PacketType
    if packet_type is not PacketType.PUBLISH
}
"""What the lower four bits must be; those of PUBLISH carry DUP, QoS and RETAIN."""

FIRST_BYTE: Final[dict[PacketType, int]] = {
    packet_type: packet_type << 4 | flags for packet_type, flags in FLAGS.items()
}
"""The whole first byte of every packet but PUBLISH."""

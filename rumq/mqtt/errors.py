"""Faults of a peer, each with the reason code of the answer. MQTT 5.0, 4.13. The tree:

    MqttFault                 carries `reason` and a sentence that says what was seen
    ├── MalformedPacket       0x81  it cannot be parsed
    ├── ProtocolViolation     0x82  it can be parsed, and violates the protocol
    ├── UnsupportedVersion    0x84  a CONNECT of an unknown protocol version
    ├── TopicFilterInvalid    0x8F
    ├── TopicNameInvalid      0x90
    └── PacketTooLarge        0x95

Other reason codes (topic alias 0, an empty client id) come as a plain MqttFault. A packet of *ours* that
cannot be encoded is no MqttFault but a ValueError: it is our bug, not the peer's.
The session chooses the packet of the answer. Arguments are plain, for pickle: shards are processes."""

from typing import ClassVar

from rumq.mqtt.reasons import Reason


class MqttFault(Exception):
    """The peer broke the standard, or is not served here. reason: what to tell it; message: what was seen, in plain
    words; server_reference: "host:port" of a server that may serve it, "": none is known"""

    server_reference = ""

    def __init__(self, message: str, reason: Reason = Reason.UNSPECIFIED_ERROR, server_reference: str = "") -> None:
        super().__init__(message, reason, server_reference)
        self.message, self.reason, self.server_reference = message, reason, server_reference

    def __str__(self) -> str:
        return f"{self.message} (0x{self.reason:02X} {self.reason.text})"


class _FaultOfOneReason(MqttFault):
    """A fault whose class already says its reason."""

    always: ClassVar[Reason]

    def __init__(self, message: str) -> None:
        Exception.__init__(self, message)
        self.message, self.reason = message, self.always


class MalformedPacket(_FaultOfOneReason):
    always = Reason.MALFORMED_PACKET


class ProtocolViolation(_FaultOfOneReason):
    always = Reason.PROTOCOL_ERROR


class TopicFilterInvalid(_FaultOfOneReason):
    always = Reason.TOPIC_FILTER_INVALID


class TopicNameInvalid(_FaultOfOneReason):
    always = Reason.TOPIC_NAME_INVALID


class PacketTooLarge(_FaultOfOneReason):
    always = Reason.PACKET_TOO_LARGE


class UnsupportedVersion(MqttFault):
    """A CONNECT of a protocol we do not speak. answer_version: 4 or 5, whose CONNACK to answer with."""

    def __init__(self, message: str, answer_version: int) -> None:
        Exception.__init__(self, message, answer_version)
        self.message, self.reason = message, Reason.UNSUPPORTED_PROTOCOL_VERSION
        self.answer_version = answer_version

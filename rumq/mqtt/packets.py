"""One frozen record per control packet. MQTT 5.0, chapter 3.

Fields that a version lacks keep their defaults: before 5 all `properties`, the `reasons` of UNSUBACK, and every reason
except those of CONNACK and SUBACK."""

from dataclasses import dataclass, field

from rumq.mqtt.properties import Properties
from rumq.mqtt.reasons import Reason


@dataclass(frozen=True, slots=True)
class Will:
    """What the broker publishes for a client that vanishes. properties: those of table 2-4 for "Will"."""

    topic: str
    payload: bytes
    qos: int = 0
    retain: bool = False
    properties: Properties = field(default_factory=Properties)


@dataclass(frozen=True, slots=True)
class Connect:
    """version: 3 (3.1, MQIsdp), 4 (3.1.1) or 5. keep_alive: in seconds, 0 for none.

    clean_start: forget an earlier session. Before 5 it is called clean session, and also ends this one.
    """

    client_id: str
    version: int = 5
    clean_start: bool = True
    keep_alive: int = 0
    username: str | None = None
    password: bytes | None = None
    will: Will | None = None
    properties: Properties = field(default_factory=Properties)


@dataclass(frozen=True, slots=True)
class Connack:
    session_present: bool = False
    reason: Reason = Reason.SUCCESS
    properties: Properties = field(default_factory=Properties)


@dataclass(frozen=True, slots=True)
class Publish:
    """topic: empty only beside a topic alias. packet_id: 1 to 65,535, None at QoS 0."""

    topic: str
    payload: bytes
    qos: int = 0
    retain: bool = False
    dup: bool = False
    packet_id: int | None = None
    properties: Properties = field(default_factory=Properties)


@dataclass(frozen=True, slots=True)
class _PublishAnswer:
    packet_id: int
    reason: Reason = Reason.SUCCESS
    properties: Properties = field(default_factory=Properties)


@dataclass(frozen=True, slots=True)
class Puback(_PublishAnswer):
    """Answers a PUBLISH of QoS 1."""


@dataclass(frozen=True, slots=True)
class Pubrec(_PublishAnswer):
    """Answers a PUBLISH of QoS 2."""


@dataclass(frozen=True, slots=True)
class Pubrel(_PublishAnswer):
    """Answers PUBREC."""


@dataclass(frozen=True, slots=True)
class Pubcomp(_PublishAnswer):
    """Answers PUBREL."""


@dataclass(frozen=True, slots=True)
class SubscriptionRequest:
    """One filter of a SUBSCRIBE. retain_handling: 0 send retained, 1 only if new, 2 never."""

    topic_filter: str
    qos: int = 0
    no_local: bool = False
    retain_as_published: bool = False
    retain_handling: int = 0


@dataclass(frozen=True, slots=True)
class Subscribe:
    packet_id: int
    filters: tuple[SubscriptionRequest, ...]
    properties: Properties = field(default_factory=Properties)


@dataclass(frozen=True, slots=True)
class Suback:
    """reasons: one a filter, in the order of the SUBSCRIBE."""

    packet_id: int
    reasons: tuple[Reason, ...]
    properties: Properties = field(default_factory=Properties)


@dataclass(frozen=True, slots=True)
class Unsubscribe:
    packet_id: int
    filters: tuple[str, ...]
    properties: Properties = field(default_factory=Properties)


@dataclass(frozen=True, slots=True)
class Unsuback:
    """reasons: one a filter, in the order of the UNSUBSCRIBE; none before 5."""

    packet_id: int
    reasons: tuple[Reason, ...] = ()
    properties: Properties = field(default_factory=Properties)


@dataclass(frozen=True, slots=True)
class Pingreq:
    pass


@dataclass(frozen=True, slots=True)
class Pingresp:
    pass


@dataclass(frozen=True, slots=True)
class Disconnect:
    reason: Reason = Reason.NORMAL_DISCONNECTION
    properties: Properties = field(default_factory=Properties)


@dataclass(frozen=True, slots=True)
class Auth:
    """A step of enhanced authentication, version 5 only. MQTT 5.0, 4.12."""

    reason: Reason = Reason.SUCCESS
    properties: Properties = field(default_factory=Properties)


Packet = (
    Connect
    | Connack
    | Publish
    | Puback
    | Pubrec
    | Pubrel
    | Pubcomp
    | Subscribe
    | Suback
    | Unsubscribe
    | Unsuback
    | Pingreq
    | Pingresp
    | Disconnect
    | Auth
)

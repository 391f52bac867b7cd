"""What the bench and the processes of one run say to each other. Pure data."""

import msgspec

PUBLISHERS = 10
QOS1_PUBLISHERS = 7
RATE = 2_000
PAYLOAD_BYTES = 64


class OthersTask(msgspec.Struct, frozen=True, kw_only=True):
    """The well-behaved: client i publishes to topic i, a subscriber of its own hears it. rate: of all together"""

    address: tuple[str, int]
    publisher_ids: list[str]
    subscriber_ids: list[str]
    topics: list[str]
    qos1: int
    rate: int
    seconds: float


class NeighbourTask(msgspec.Struct, frozen=True, kw_only=True):
    """act: what it does, by its name in `acts.py`; options: its own"""

    address: tuple[str, int]
    act: str
    options: dict[str, float]
    seconds: float


class Ready(msgspec.Struct, frozen=True, tag=True):
    """Connected; waits for a line."""


class Failed(msgspec.Struct, frozen=True, tag=True):
    why: str


class Did(msgspec.Struct, frozen=True, tag=True):
    """A neighbour has behaved itself badly enough. figures: how much of it, for people to read"""

    figures: dict[str, float]
    cpu_s: float


class Lived(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """What became of the others' messages, one place for each that came. Times are CLOCK_REALTIME, in ns.

    sent_ns: just before send; socket_ns: until the kernel had it at the subscriber's socket; seen_ns: until it was
    received; packed u64 all three. qos: one byte each
    lost: sent and never received; late_ns_max: how far behind its plan a message was sent, the generator's own fault
    """

    began_ns: int
    sent_ns: bytes
    socket_ns: bytes
    seen_ns: bytes
    qos: bytes
    sent: int
    lost: int
    twice_or_out_of_order: int
    unacknowledged: int
    disconnected: int
    late_ns_max: int
    cpu_s: float


Report = Ready | Failed | Did | Lived

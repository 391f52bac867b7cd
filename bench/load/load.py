"""What a scenario asks of a broker, and the messages between the bench and its workers. Pure data."""

from typing import Literal

import msgspec

PAYLOAD_BYTES = 64
# publisher u32, sequence u64, send time u64: kernels/offer.py.
STAMP_BYTES = 20
FILLER = bytes(range(64, 64 + PAYLOAD_BYTES - STAMP_BYTES))
TOPIC_BYTES = 7
TOPICS_SHORT = 100_000  # as many have names of `TOPIC_BYTES`; with more of them, all are longer
# The round's number rides in the publisher field, so that a straggler of an earlier round is seen as one.
ROUND_PUBLISHERS = 1 << 24


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """Who publishes what to whom.

    topics: of each publisher; message `s` goes to topic `s mod topics`
    spread: "pairs": subscriber i gets publisher i; "all": every subscriber gets everything; "shared": each message
    goes to one of them, of a shared subscription
    window: QoS 1 and 2: messages a publisher has in flight at most
    rate: messages a second of all publishers together; 0: as fast as the broker takes them
    lasting: subscribers' sessions outlive their connections
    lead: publishers wait while more than this many messages are sent beyond what the subscribers have got
    phase: an open loop at `rate`: all publishers send at the beginning of each period ("burst"), or one after the
    other, evenly spread over it ("even"). Each message carries the time it was due at. One topic each, QoS 0 or 1
    alone: one publisher at QoS 1 sends the next message once the one before is acknowledged, and times that
    durability: the broker's, where it has a choice; empty: "disk" above QoS 0
    keep_alive_s: what connections say that only connect or ping
    killed: the broker is, while messages wait for a session
    inflight_max: messages that the broker has in flight to a client at most; 0: its settings for any other load
    """

    publishers: int
    subscribers: int
    qos: int = 0
    topics: int = 1
    spread: Literal["pairs", "all", "shared"] = "all"
    window: int = 0
    rate: int = 0
    latency: bool = False
    lasting: bool = False
    lead: int = 20_000
    phase: Literal["", "burst", "even"] = ""
    alone: bool = False
    durability: Literal["", "disk", "process"] = ""
    keep_alive_s: int = 3600
    killed: bool = False
    inflight_max: int = 0

    @property
    def deliveries_per_message(self) -> int:
        return self.subscribers if self.spread == "all" else 1

    def heard(self, subscriber: int) -> range:
        """The publishers that `subscriber` gets messages of."""
        return range(subscriber, subscriber + 1) if self.spread == "pairs" else range(self.publishers)

    def topic_filter(self, subscriber: int) -> str:
        heard = self.heard(subscriber)
        if self.spread == "shared":
            return "$share/bench/b/#"
        if len(heard) * self.topics == 1:
            return topic_name(heard.start * self.topics, self.topic_bytes)
        return "b/#"

    @property
    def topic_bytes(self) -> int:
        """Length of every topic's name."""
        return TOPIC_BYTES if self.publishers * self.topics <= TOPICS_SHORT else TOPIC_BYTES + 2

    def topic_names(self, publishers: range) -> bytes:
        """The topics of `publishers`, one after the other, `topic_bytes` each."""
        numbers = range(publishers.start * self.topics, publishers.stop * self.topics)
        return "".join(topic_name(number, self.topic_bytes) for number in numbers).encode()


def topic_name(number: int, size: int = TOPIC_BYTES) -> str:
    return f"b/{number:0{size - 2}d}"


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """What one worker is for: its share of a load's connections.

    first, count: its publishers or subscribers; slot: its place among the workers of its role
    progress: path of the shared counters; workers: how many publish, how many subscribe
    """

    role: Literal["publish", "subscribe", "idle", "ping", "connect"]
    address: tuple[str, int]
    load: Load
    first: int
    count: int
    slot: int = 0
    workers: tuple[int, int] = (1, 1)
    progress: str = ""
    name: str = ""


class Round(msgspec.Struct, frozen=True, kw_only=True):
    """One stretch of traffic. messages: of each publisher; seconds_max: publishers stop then anyway."""

    number: int
    messages: int
    seconds_max: float
    lead: int


class Ready(msgspec.Struct, frozen=True, tag=True):
    """The worker is connected, or has begun to listen for a round."""


class Failed(msgspec.Struct, frozen=True, tag=True):
    why: str


class Published(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """What a publishing worker did in a round. Times are CLOCK_MONOTONIC, in ns.

    late_ns: by how much each message of an open loop was sent late, packed u64; acknowledged_ns: PUBLISH to PUBACK
    """

    started_ns: int
    ended_ns: int
    sent: int
    unacknowledged: int
    disordered: int
    late_ns_max: int
    cpu_s: float
    late_ns: bytes = b""
    acknowledged_ns: bytes = b""


class Heard(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """What a subscribing worker got in a round, all its connections together.

    missing: sent and not received; late: received after a later one, or twice; stray: of another round
    latencies_ns: samples, where the load asks for them, as packed u64
    """

    ended_ns: int
    received: int
    missing: int
    late: int
    corrupt: int
    stray: int
    redelivered: int
    cpu_s: float
    latencies_ns: bytes


Report = Ready | Failed | Published | Heard

"""Commands: the inputs of `router.shard.ShardRouter.step`, in batches. Plain data."""
# compiled: warm

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from commitlog import Gap
from commitlog.chunk import Chunk
from router.matching.retained import RetainedRecord
from router.readers.reader import DeliverySink, Reader
from router.readers.subscriber import Subscriber
from router.readers.subscription import Subscription, TopicPermit


class Appended:
    """A chunk that was appended to a partition of this shard; in the order of their lsns."""

    __slots__ = ("chunk", "partition")

    def __init__(self, partition: int, chunk: Chunk) -> None:
        self.partition, self.chunk = partition, chunk


def appended(partition: int, chunk: Chunk) -> Appended:
    """`Appended`. What each turn has: no constructor unpacks its arguments."""
    made = Appended.__new__(Appended)
    made.partition, made.chunk = partition, chunk
    return made


class Committed:
    """The partition is committed below `lsn`, as its stream's durability promises."""

    __slots__ = ("lsn", "partition")

    def __init__(self, partition: int, lsn: int) -> None:
        self.partition, self.lsn = partition, lsn


def committed(partition: int, lsn: int) -> Committed:
    """`Committed`, as `appended`."""
    made = Committed.__new__(Committed)
    made.partition, made.lsn = partition, lsn
    return made


@dataclass(slots=True, eq=False)
class RemoteChunk:
    """A chunk of a partition that another shard owns."""

    partition: int
    chunk: Chunk


@dataclass(slots=True, eq=False)
class RemoteWatermark:
    """Watermarks of another shard's partition: everything wanted below `live_lsn` has arrived."""

    partition: int
    live_lsn: int
    committed_lsn: int


@dataclass(slots=True, eq=False)
class SubscribeShard:
    """Another shard subscribes to these filters, with one reader for all of its clients.

    own: the partitions that it reads here; cursors: where its reader starts, the first time"""

    subscriber: Subscriber
    topic_filters: list[str]
    own: list[int]
    cursors: dict[int, int] | None = None


@dataclass(slots=True, eq=False)
class NoInterest:
    """Another shard unsubscribes from these filters: no client there needs them."""

    subscriber: Subscriber
    topic_filters: list[str]


@dataclass(slots=True, eq=False)
class ShareMembers:
    """Another shard is connected and has so many members of each shared group: `SharedGroupRules.shard_joined`."""

    shard: Subscriber
    sink: DeliverySink
    weights: dict[str, tuple[str, int]]
    handed: dict[str, list[tuple[int, int, int]]]
    prune: bool


@dataclass(slots=True, eq=False)
class ShareAway:
    """The connection to another shard is lost."""

    shard: Subscriber


@dataclass(slots=True, eq=False)
class ShareNews:
    """News of another shard's members of a shared group. what: "weight", "back", "early", "ready" or "done" """

    shard: Subscriber
    what: str
    key: str
    topic_filter: str
    weight: int
    ranges: list[tuple[int, int, int]]


@dataclass(slots=True, eq=False)
class SharePart:
    """The home of a shared group assigns these ranges to members here."""

    key: str
    ranges: list[tuple[int, int, int]]


@dataclass(slots=True, eq=False)
class HomeAway:
    """The home of some shared groups is lost: it assigns anew what was not delivered. is_there: by key"""

    is_there: Callable[[str], bool]


@dataclass(slots=True, eq=False)
class RetainedFound:
    """Retained messages of another shard for a new subscription, below the lsns at which the subscription starts."""

    reader: Reader
    subscription: Subscription
    messages: list[RetainedRecord]


@dataclass(slots=True, eq=False)
class AddSubscription:
    """Add or replace one subscription. `retained`: send retained messages (the session knows retain handling)."""

    subscriber: Subscriber
    subscription: Subscription
    retained: bool


@dataclass(slots=True, eq=False)
class Replay:
    """Add a subscription that starts in the past and then continues live.

    start: "earliest", "latest", ("time", µs since 1970), ("retained", likewise: with what was retained then), or
    ("offset", n) of a filter without wildcards
    asked: the filter as the client wrote it, by which it unsubscribes
    """

    subscriber: Subscriber
    asked: str
    subscription: Subscription
    start: str | tuple[str, int]


@dataclass(slots=True, eq=False)
class JoinShare:
    """Join a shared subscription. MQTT 5.0, 4.8.2."""

    subscriber: Subscriber
    asked: str
    subscription: Subscription


@dataclass(slots=True, eq=False)
class RemoveSubscription:
    subscriber: Subscriber
    asked: str


@dataclass(slots=True, eq=False)
class ChangePermits:
    """The permissions of a session's subscriptions have changed. permits: by filter as written"""

    subscriber: Subscriber
    permits: dict[str, TopicPermit | None]


@dataclass(slots=True, eq=False)
class Attach:
    """The client is connected: its readers continue at their cursors."""

    subscriber: Subscriber
    sink: DeliverySink


@dataclass(slots=True, eq=False)
class Detach:
    """The client has disconnected; its session and the cursors stay."""

    subscriber: Subscriber


@dataclass(slots=True, eq=False)
class End:
    """The session is over. `unacknowledged`: (reader number, partition, lsn) of QoS 1 messages in flight."""

    subscriber: Subscriber
    unacknowledged: list[tuple[int, int, int]]


@dataclass(slots=True, eq=False)
class Blocked:
    """Backpressure: the sink accepted nothing of a partition from `lsn` on, for want of room or credit."""

    reader: Reader
    partition: int
    lsn: int


@dataclass(slots=True, eq=False)
class Ready:
    """A subscriber's sink has room and credit again."""

    subscriber: Subscriber


@dataclass(slots=True, eq=False)
class ColdChunks:
    """The answer to `ReadCold`: chunks and gaps from `lsn` on; empty when the read failed."""

    partition: int
    lsn: int
    chunks: list[Chunk | Gap]


@dataclass(slots=True, eq=False)
class StartFound:
    """Where a replay starts: partition -> lsn; and the messages retained there, to be sent first."""

    reader: Reader
    lsns: dict[int, int]
    retained: list[RetainedRecord] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class GoOn:
    """A turn has begun: resume what waits for topics to be matched."""


Command = (
    Appended | Committed | AddSubscription | Replay | JoinShare | RemoveSubscription | ChangePermits | Attach | Detach
    | End | Blocked | Ready | ColdChunks | StartFound | RemoteChunk | RemoteWatermark | SubscribeShard | NoInterest
    | RetainedFound | ShareMembers | ShareAway | ShareNews | SharePart | HomeAway | GoOn
)  # fmt: skip


class CommandQueue(Protocol):
    """Commands that wait for the next step; whoever steps the router owns it."""

    def put(self, command: Command, /) -> None: ...

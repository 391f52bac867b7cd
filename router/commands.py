"""What a shard's router can be told. Plain data, in batches."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from commitlog import Chunk, Gap
from router.reader import DeliverySink, Reader
from router.retained import Retained
from router.subscriber import Subscriber
from router.subscription import Permit, Subscription


@dataclass(slots=True, eq=False)
class Append:
    """Records for one partition, as `commitlog.Partition.append` takes them."""

    partition: int
    rows: bytearray
    frames: bytes
    count: int
    flags: int
    tags: bytes
    sources: bytes = b""


@dataclass(slots=True, eq=False)
class Committed:
    """Everything below `lsn` is as safe as the stream promises."""

    partition: int
    lsn: int


@dataclass(slots=True, eq=False)
class RemoteChunk:
    """A chunk of a partition that another shard owns."""

    partition: int
    chunk: Chunk


@dataclass(slots=True, eq=False)
class RemoteWatermark:
    """How far another shard's partition has come: everything wanted below `live_lsn` has arrived."""

    partition: int
    live_lsn: int
    committed_lsn: int


@dataclass(slots=True, eq=False)
class Interest:
    """Another shard wants these filters too; what its one reader has not had yet is sent with them.

    own: the partitions that it is told of; cursors: where its reader begins, the first time"""

    subscriber: Subscriber
    topic_filters: list[str]
    own: list[int]
    cursors: dict[int, int] | None = None


@dataclass(slots=True, eq=False)
class NoInterest:
    """Another shard has nobody left who wants these filters."""

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
    """Another shard is gone."""

    shard: Subscriber


@dataclass(slots=True, eq=False)
class ShareNews:
    """Of another shard's members. what: "weight", "back", "early", "ready" or "done" """

    shard: Subscriber
    what: str
    key: str
    topic_filter: str
    weight: int
    ranges: list[tuple[int, int, int]]


@dataclass(slots=True, eq=False)
class SharePart:
    """The home of a share hands these ranges to our members."""

    key: str
    ranges: list[tuple[int, int, int]]


@dataclass(slots=True, eq=False)
class RetainedFound:
    """What another shard had retained for a new subscription, below the lsns where the subscription began."""

    reader: Reader
    subscription: Subscription
    messages: list[Retained]


@dataclass(slots=True, eq=False)
class Subscribe:
    """Add or replace one subscription. `retained`: send retained messages (the session knows retain handling)."""

    subscriber: Subscriber
    subscription: Subscription
    retained: bool


@dataclass(slots=True, eq=False)
class Replay:
    """Add a subscription that begins in the past and then goes on live.

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
    """Take part in a shared subscription. MQTT 5.0, 4.8.2."""

    subscriber: Subscriber
    asked: str
    subscription: Subscription


@dataclass(slots=True, eq=False)
class Unsubscribe:
    subscriber: Subscriber
    asked: str


@dataclass(slots=True, eq=False)
class Permits:
    """What the subscriptions of a session may receive has changed. permits: by filter as written"""

    subscriber: Subscriber
    permits: dict[str, Permit | None]


@dataclass(slots=True, eq=False)
class Attach:
    """A client is there: its readers go on from where they stand."""

    subscriber: Subscriber
    sink: DeliverySink


@dataclass(slots=True, eq=False)
class Detach:
    """The client left, its session stays: the cursors wait. `lowest`: reader -> partition -> lsn to resume at."""

    subscriber: Subscriber


@dataclass(slots=True, eq=False)
class End:
    """The session is over. `unacknowledged`: (reader number, partition, lsn) of QoS 1 messages in flight."""

    subscriber: Subscriber
    unacknowledged: list[tuple[int, int, int]]


@dataclass(slots=True, eq=False)
class Blocked:
    """A reader took nothing of partition `partition` from `lsn` on: no room, or no credit."""

    reader: Reader
    partition: int
    lsn: int


@dataclass(slots=True, eq=False)
class Ready:
    """A subscriber's sink has room and credit again."""

    subscriber: Subscriber


@dataclass(slots=True, eq=False)
class ColdRead:
    """What `ReadCold` found: chunks and gaps from `lsn` on; empty with a fault when it failed."""

    partition: int
    lsn: int
    chunks: list[Chunk | Gap]


@dataclass(slots=True, eq=False)
class StartFound:
    """Where a replay begins: partition -> lsn; and what was retained there, to be sent first."""

    reader: Reader
    lsns: dict[int, int]
    retained: list[Retained] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class GoOn:
    """A turn has begun: go on with what waits for topics to be matched."""


Command = (
    Append | Committed | Subscribe | Replay | JoinShare | Unsubscribe | Permits | Attach | Detach | End | Blocked
    | Ready | ColdRead | StartFound | RemoteChunk | RemoteWatermark | Interest | NoInterest | RetainedFound
    | ShareMembers | ShareAway | ShareNews | SharePart | GoOn
)  # fmt: skip


class CommandQueue(Protocol):
    """Commands that wait for the next step; whoever steps the router owns it."""

    def put(self, command: Command, /) -> None: ...

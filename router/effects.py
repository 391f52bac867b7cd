"""What the router asks of the world. Plain data; each says before or after what.

Order: effects are carried out in the order given. What a sink could not take comes back as `Blocked`."""

from __future__ import annotations

from array import array
from dataclasses import dataclass

from commitlog import Chunk
from router.reader import Group, Reader
from router.retained import FoundRetained, Search
from router.routes import Places
from router.subscriber import Subscriber
from router.subscription import DeliveryOptions, Subscription


@dataclass(slots=True, eq=False)
class Deliver:
    """Give rows `first`..`stop` of a chunk to readers of one group, those rows that the group wants.

    forms: row -> places[row] -> wanted[place] -> group.forms[that - 1], 0 is "not wanted"; `wanted` None: all rows
    of first..stop have form number `form`. denied: places[row] -> 1 where the readers asked for a row and may not
    receive it (`places` None: all rows are in place 0); then `wanted` may want nothing.
    """

    group: Group
    partition: int
    chunk: Chunk
    first: int
    stop: int
    readers: list[Reader]
    form: int
    wanted: array[int] | None
    places: Places
    denied: array[int] | None = None


@dataclass(slots=True, eq=False)
class DeliverRetained:
    """Give retained messages to one reader before anything else it gets, a piece at a time. MQTT 5.0, 3.3.1.3."""

    reader: Reader
    search: Search | FoundRetained
    form: DeliveryOptions


@dataclass(slots=True, eq=False)
class ReadCold:
    """Read a partition from disk, from `lsn` on, and answer with `ColdRead`."""

    partition: int
    lsn: int


@dataclass(slots=True, eq=False)
class FindStart:
    """Find the lsn in each partition where a replay begins, and answer with `StartFound`.

    retained: and what was retained there, for the subscription's filter"""

    reader: Reader
    ts_us: int | None
    topic: bytes | None
    offset: int | None
    retained: str | None = None


@dataclass(slots=True, eq=False)
class FindRetained:
    """Ask the owners of other partitions what they have retained for a new subscription, and answer with
    `RetainedFound`. below: partition -> lsn, from which on the reader gets messages anyway."""

    reader: Reader
    subscription: Subscription
    below: dict[int, int]


@dataclass(slots=True, eq=False)
class ShareWeight:
    """Tell a share's home how many members of it are here."""

    key: str
    topic_filter: str
    weight: int


@dataclass(slots=True, eq=False)
class ShareLeft:
    """Tell another shard that its share of a share is taken back: what it is handed from here on is new."""

    shard: Subscriber
    key: str


@dataclass(slots=True, eq=False)
class ShareBegun:
    """A share whose home is here begins, for members in another shard. cursors: where, in each partition"""

    key: str
    cursors: list[int]


@dataclass(slots=True, eq=False)
class ShareBack:
    """Give ranges back to a share's home: no member here can take any for now. early: there is no member here (yet)"""

    key: str
    ranges: list[tuple[int, int, int]]
    early: bool = False


@dataclass(slots=True, eq=False)
class ShareReady:
    """Tell a share's home that members here can take messages again."""

    key: str


@dataclass(slots=True, eq=False)
class ShareDone:
    """Tell a share's home that members here have what is in these ranges, once that is written down."""

    key: str
    ranges: list[tuple[int, int, int]]


@dataclass(slots=True, eq=False)
class RecordsLost:
    """Records from `lsn` up to `next_lsn` that a reader will not get: what of them it asked for is told, and counted.

    why: "retention" (took them first), "damaged" (on disk), "backlog_records_max" (the reader was too far behind)
    """

    reader: Reader
    partition: int
    lsn: int
    next_lsn: int
    why: str


@dataclass(slots=True, eq=False)
class CatchUpPaused:
    """A reader has had its piece and is still behind: answer with `Ready` once the piece has left.

    if_taken: only if what it was given in this step is taken"""

    reader: Reader
    if_taken: bool = False


@dataclass(slots=True, eq=False)
class Merged:
    """A subscription that had a reader of its own is now one of its session's main reader."""

    key: str
    asked: str
    reader: Reader


@dataclass(slots=True, eq=False)
class ReplayStarted:
    """The start of a replay has been found: its reader's cursors stand there."""

    reader: Reader


Effect = (
    Deliver | DeliverRetained | FindRetained | ReadCold | FindStart | RecordsLost | CatchUpPaused | Merged
    | ReplayStarted | ShareWeight
    | ShareBegun | ShareLeft | ShareBack | ShareReady | ShareDone
)  # fmt: skip

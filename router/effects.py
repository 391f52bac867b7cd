"""Effects: the outputs of `router.shard.ShardRouter.step`, to be carried out in the order given. Plain data.

What a sink does not accept comes back as the command `Blocked`."""
# compiled: warm

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from commitlog.chunk import Chunk
from router.matching.retained import FoundRetained, Search
from router.matching.routes import Places
from router.matching.scatter import Part
from router.readers.reader import Group, Reader
from router.readers.subscriber import Subscriber
from router.readers.subscription import DeliveryOptions, Subscription

Table: TypeAlias = "tuple[array[int] | None, Places, array[int] | None]"  # wanted, places, denied
ALL: Table = (None, None, None)


class ChunkRows:
    """Rows `first`..`stop` of a chunk of a partition."""

    __slots__ = ("chunk", "first", "partition", "stop")

    chunk: Chunk
    partition: int
    first: int
    stop: int


class Deliver(ChunkRows):
    """Deliver rows `first`..`stop` of a chunk to readers of one group, those rows that the group wants.

    forms: row -> places[row] -> wanted[place] -> group.forms[that - 1], 0 is "not wanted"; `wanted` None: all rows
    of first..stop have form number `form`. denied: places[row] -> 1 where the readers asked for a row and may not
    receive it (`places` None: all rows are in place 0); then `wanted` may want nothing.
    """

    __slots__ = ("denied", "form", "group", "places", "readers", "wanted")

    def __init__(
        self, group: Group, partition: int, chunk: Chunk, first: int, stop: int, readers: list[Reader],
        form: int = 0, table: Table = ALL,
    ) -> None:  # fmt: skip
        """table: of `wanted`, `places` and `denied`"""
        self.group, self.partition, self.chunk = group, partition, chunk
        self.first, self.stop, self.readers, self.form = first, stop, readers, form
        self.wanted, self.places, self.denied = table


def all_rows(
    group: Group, partition: int, chunk: Chunk, first: int, stop: int, readers: list[Reader], form: int
) -> Deliver:
    """`Deliver` of rows that are all wanted in one form. What most turns have: no constructor unpacks its arguments."""
    made = Deliver.__new__(Deliver)
    made.group, made.partition, made.chunk = group, partition, chunk
    made.first, made.stop, made.readers, made.form = first, stop, readers, form
    made.wanted = made.places = made.denied = None
    return made


class Scatter(ChunkRows):
    """Deliver rows of first..stop of a chunk to many groups, to each its own: `router.matching.scatter.Part`."""

    __slots__ = ("parts",)

    def __init__(self, partition: int, chunk: Chunk, first: int, stop: int, parts: list[Part]) -> None:
        self.partition, self.chunk, self.first, self.stop, self.parts = partition, chunk, first, stop, parts

    def as_delivery(self, part: Part) -> Deliver:
        """What one of the groups gets, with a table of its rows."""
        group, readers, form, picked, first, stop = part
        places = memoryview(bytearray(4 * self.stop)).cast("I")
        for at in range(first, stop):
            places[picked[at]] = 1
        wanted = array("I", (0, form + 1))
        return Deliver(group, self.partition, self.chunk, self.first, self.stop, readers, 0, (wanted, places, None))


@dataclass(slots=True, eq=False)
class DeliverRetained:
    """Deliver retained messages to one reader before anything else, a piece at a time. MQTT 5.0, 3.3.1.3."""

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
    """Find the lsn in each partition where a replay starts, and answer with `StartFound`.

    retained: a filter, whose messages retained at that time are wanted too"""

    reader: Reader
    ts_us: int | None
    topic: bytes | None
    offset: int | None
    retained: str | None = None


@dataclass(slots=True, eq=False)
class FindRetained:
    """Ask the owners of other partitions for the retained messages of a new subscription; each answer is a
    `RetainedFound`. below: partition -> lsn, from which on the reader gets messages live."""

    reader: Reader
    subscription: Subscription
    below: dict[int, int]


@dataclass(slots=True, eq=False)
class ReportShareWeight:
    """Tell the home of a shared group how many members are here."""

    key: str
    topic_filter: str
    weight: int


@dataclass(slots=True, eq=False)
class ConfirmShareLeft:
    """Confirm to a shard without members that its outstanding assignments are revoked; later ones are new."""

    shard: Subscriber
    key: str


@dataclass(slots=True, eq=False)
class ShareBegun:
    """A shared group whose home is here was created for members in another shard. cursors: its start, by partition"""

    key: str
    cursors: list[int]


@dataclass(slots=True, eq=False)
class ReturnShare:
    """Return ranges to the home of a shared group: no member here has capacity. early: there is no member here (yet)"""

    key: str
    ranges: list[tuple[int, int, int]]
    early: bool = False


@dataclass(slots=True, eq=False)
class ReportShareReady:
    """Tell the home of a shared group that members here have capacity again."""

    key: str


@dataclass(slots=True, eq=False)
class ReportShareDone:
    """Tell the home of a shared group that these ranges are delivered, once the journal says so."""

    key: str
    ranges: list[tuple[int, int, int]]


@dataclass(slots=True, eq=False)
class RecordsLost:
    """Records lsn..next_lsn that a reader will not get; those that it subscribes to are reported and counted.

    why: "retention" (removed before it read them), "damaged" (on disk), "backlog_records_max" (it was too far behind)
    """

    reader: Reader
    partition: int
    lsn: int
    next_lsn: int
    why: str


@dataclass(slots=True, eq=False)
class CatchUpPaused:
    """A reader has had its bounded piece and is still behind: answer with `Ready` once the piece is sent.

    if_taken: only if its sink accepts what this step delivers"""

    reader: Reader
    if_taken: bool = False


@dataclass(slots=True, eq=False)
class Merged:
    """A subscription moved from a reader of its own to its session's main reader."""

    key: str
    asked: str
    reader: Reader


@dataclass(slots=True, eq=False)
class ReplayStarted:
    """The start of a replay was found: its reader's cursors are set."""

    reader: Reader


@dataclass(slots=True, eq=False)
class ReplayEnded:
    """A replay that asked for it has reached where the log ended when it began."""

    reader: Reader


Effect = (
    Deliver | Scatter | DeliverRetained | FindRetained | ReadCold | FindStart | RecordsLost | CatchUpPaused | Merged
    | ReplayStarted | ReplayEnded | ReportShareWeight
    | ShareBegun | ConfirmShareLeft | ReturnShare | ReportShareReady | ReportShareDone
)  # fmt: skip


def readers_served(effects: Iterable[Effect]) -> set[Reader]:
    """Readers with a delivery among them, which their sinks may not accept."""
    served: set[Reader] = set()
    for effect in effects:
        if type(effect) is Deliver:
            served.update(effect.readers)
        elif type(effect) is Scatter:
            served.update(reader for _, readers, *_ in effect.parts for reader in readers)
    return served

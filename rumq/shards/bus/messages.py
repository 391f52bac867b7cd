"""The messages that shards exchange over the bus, as plain data; `rumq.shards.bus.bus_link` frames them.

Both sides begin with `Hello`; `Begin` subscribes to everything that sessions want, once they are restored. Records flow
both ways: `PublishedRecords` to a partition's owner, `Rows` from it; `Mark` has the partition's watermarks. A `request`
number is answered with `Wanted`, or with the answer of its kind; an open question is asked again over the next link."""

from __future__ import annotations

import msgspec

from rumq.shards.bus.shard_tally import Counts, Standing
from rumq.tracing.trace import Wire

Names = list[tuple[int, bytes]]
Ranges = list[tuple[int, int, int]]  # (partition, first lsn, next lsn)


class BusMessage(msgspec.Struct, frozen=True, array_like=True):
    """An array that begins with the message's tag."""


# Joining


class Hello(BusMessage, frozen=True, tag="hello"):
    """The first message of each side. incarnation: of this run of the shard; partitions: index -> (first lsn, next lsn)
    of those that it owns; starts: of each, as `Partition.starts`; ring: identity of the link's ring here, 0: none"""

    shard: int
    incarnation: int
    partitions: dict[int, tuple[int, int]]
    starts: dict[int, list[tuple[int, int]]] = {}  # an older node tells none
    ring: int = 0


class Begin(BusMessage, frozen=True, tag="begin"):
    """Forward records that these filters match, of each partition from its lsn on.

    shares: shared subscriptions whose home is the receiver: key -> (filter, weight)
    handed: likewise, ranges that members have"""

    filters: list[str]
    cursors: dict[int, int]
    shares: dict[str, tuple[str, int]]
    handed: dict[str, Ranges]


class Resume(BusMessage, frozen=True, tag="resume"):
    """Asks up to which sequence the owner's log has the sender's records. lsn: those below are acknowledged"""

    partition: int
    lsn: int


class Resumed(BusMessage, frozen=True, tag="resumed"):
    """sequence: of the last record in the log; 0: none since the lsn"""

    partition: int
    sequence: int


# Publishing to a partition's owner


class PublishedRecords(BusMessage, frozen=True, tag="published"):
    """Records for a partition, with the sender's numbers of topics and publishers; new ones come with their names.

    sequence: of the last record, in the sender's count; traced: (row, trace id, span id, topic, QoS) of those that are
    traced, sent at sent_us, µs since 1970. Raw: rows, frames, tags."""

    partition: int
    sequence: int
    count: int
    flags: int
    topics: Names
    publishers: Names
    rows_len: int
    frames_len: int
    traced: Wire = []
    sent_us: int = 0


class Numbered(BusMessage, frozen=True, tag="numbered"):
    """The owner's numbers of publishers: (the sender's number, the owner's)."""

    partition: int
    publishers: list[tuple[int, int]]


class Mark(BusMessage, frozen=True, tag="mark"):
    """A partition's watermarks. sequence: the receiver's records up to it are committed; live_lsn: all wanted records
    below have been forwarded, 0 while that is not known

    is_last: the owner hands its shard over. All that it has read of the receiver's records is in its successor's log,
    and it reads no more, until a mark that is not the last"""

    partition: int
    sequence: int
    live_lsn: int
    committed_lsn: int
    first_lsn: int
    is_last: bool = False


class RetainedFull(BusMessage, frozen=True, tag="retained_full"):
    """Whether a partition's quota of retained messages is used up."""

    partition: int
    full: bool


class Refusing(BusMessage, frozen=True, tag="refusing"):
    """Whether a partition refuses records. why: empty when it does not; full: for want of disk space"""

    partition: int
    full: bool
    why: str


# Subscribing to a partition's owner


class Want(BusMessage, frozen=True, tag="want"):
    """Forward records that these filters match as well; answered with `Wanted` once that has begun.

    marks: and send `Mark` as soon as a watermark moves"""

    request: int
    filters: list[str]
    marks: bool = False


class Wanted(BusMessage, frozen=True, tag="wanted"):
    request: int


class Unwant(BusMessage, frozen=True, tag="unwant"):
    filters: list[str]


class WantPublishers(BusMessage, frozen=True, tag="publishers?"):
    """Send the publishers' client ids of all partitions, now and as new ones come; answered with `Wanted`."""

    request: int


class Publishers(BusMessage, frozen=True, tag="publishers"):
    """Client ids of a partition's publishers, from number `first` on."""

    partition: int
    first: int
    names: list[bytes]


class Rows(BusMessage, frozen=True, tag="rows"):
    """A chunk without the frames that nobody wants. topics: names of ids not used before. Raw: rows, frames.

    traced, sent_us: as of `PublishedRecords`, with lsns instead of rows"""

    partition: int
    base_lsn: int
    count: int
    base_ts: int
    flags: int
    topics: Names
    rows_len: int
    traced: Wire = []
    sent_us: int = 0


# Shared subscriptions: between the home of a group and the shards that have members. `rumq.shards.peers.shared_groups`


class ShareJoin(BusMessage, frozen=True, tag="join"):
    """To the home: a client is about to join; answered with `Wanted` once the group exists in the home's journal."""

    request: int
    key: str
    topic_filter: str


class ShareWeight(BusMessage, frozen=True, tag="weight"):
    """To the home: this shard has so many members; 0: the last one has left."""

    key: str
    topic_filter: str
    weight: int


class ShareParts(BusMessage, frozen=True, tag="parts"):
    """From the home: these ranges are assigned to the receiver's members."""

    key: str
    ranges: Ranges


class ShareBack(BusMessage, frozen=True, tag="back"):
    """To the home: no member here has room for these ranges, nor for others until `ShareReady`.

    early: because there is no member here (yet)"""

    key: str
    ranges: Ranges
    early: bool = False


class ShareLeft(BusMessage, frozen=True, tag="left"):
    """From the home: weight 0 has arrived, and all outstanding ranges are revoked."""

    key: str


class ShareReady(BusMessage, frozen=True, tag="ready"):
    """To the home: members here have room again."""

    key: str


class ShareDone(BusMessage, frozen=True, tag="done"):
    """To the home: these ranges were delivered to members here, and the journal of this shard has that."""

    key: str
    ranges: Ranges


# Questions to a partition's owner, and answers


class ReadFrom(BusMessage, frozen=True, tag="read"):
    """Read whole chunks from the one with `lsn` on; answered with `Chunks`."""

    request: int
    partition: int
    lsn: int


class Piece(msgspec.Struct, frozen=True, array_like=True):
    """One chunk of an answer, or a gap (count 0, up to next_lsn). Raw, one after the other: rows, frames."""

    base_lsn: int
    next_lsn: int
    base_ts: int
    flags: int
    rows_len: int
    frames_len: int
    why: str = ""


class Chunks(BusMessage, frozen=True, tag="chunks"):
    request: int
    partition: int
    first_lsn: int
    topics: Names
    pieces: list[Piece]
    fault: str = ""


class StartQuestion(BusMessage, frozen=True, tag="find"):
    """Find where a replay begins, at a time or at a topic's offset; answered with `SearchAnswer`.

    retained: and the messages that were retained then, of a filter"""

    request: int
    ts_us: int | None
    topic: bytes | None
    offset: int | None
    retained: str | None


class RetainedQuestion(BusMessage, frozen=True, tag="retained?"):
    """Find the messages of a filter that are retained now; answered with `SearchAnswer`. below: partition -> lsn

    is_met: the asker has heard where the shard stands since its client asked; else `below` may be old"""

    request: int
    topic_filter: str
    below: dict[int, int]
    is_met: bool = True


class RetainedItem(msgspec.Struct, frozen=True, array_like=True):
    topic: str
    partition: int
    lsn: int
    base_ts: int
    row: bytes
    frame: bytes


class SearchAnswer(BusMessage, frozen=True, tag="found"):
    """lsns: partition -> lsn. Retained messages may come in several answers; the last one has `more` false"""

    request: int
    lsns: dict[int, int]
    retained: list[RetainedItem]
    more: bool = False
    fault: str = ""


class FindTags(BusMessage, frozen=True, tag="tags?"):
    """Find inbound QoS 2 messages of the asker's sessions from these lsns on; answered with `Tags`, once everything
    that the asker published is committed."""

    request: int
    from_lsns: dict[int, int]


class Tags(BusMessage, frozen=True, tag="tags"):
    """tags: (client id, session tag << 16 | packet id); ends: partition -> lsn below which these are all"""

    request: int
    tags: list[tuple[str, int]]
    ends: dict[int, int] = {}


# Statistics


class Tally(BusMessage, frozen=True, tag="tally"):
    """To shard 0, which publishes $SYS. incarnation: as in `Hello`"""

    shard: int
    incarnation: int
    counts: Counts
    standing: Standing


# Retention and shutdown


class Needs(BusMessage, frozen=True, tag="needs"):
    """The first record of each partition that a persistent session of the sender has not had."""

    lsns: dict[int, int]


class Leaving(BusMessage, frozen=True, tag="leaving"):
    """Retention is about to remove records below `next_lsn`; answered with `Wanted` once the receiver has counted what
    its readers lose."""

    request: int
    partition: int
    next_lsn: int


class Trimmable(BusMessage, frozen=True, tag="trimmable"):
    """Bytes in the sender's log, and the oldest finished segments that may go to free disk space: (µs of the first
    record, bytes)."""

    log_bytes: int
    oldest: list[tuple[int, int]]


class Drained(BusMessage, frozen=True, tag="drained"):
    """The sender is stopping and publishes nothing more."""


AnyMessage = (
    Hello | Begin | Resume | Resumed | PublishedRecords | Numbered | Mark | Refusing | RetainedFull | Want
    | Wanted | Unwant | Rows | ReadFrom | Chunks | StartQuestion | RetainedQuestion | SearchAnswer | FindTags
    | Tags | Needs | Trimmable | Drained | ShareJoin | ShareWeight | ShareParts | ShareBack | ShareReady
    | ShareDone | ShareLeft | Tally | Leaving | WantPublishers | Publishers
)  # fmt: skip
Question = ReadFrom | StartQuestion | RetainedQuestion | FindTags | Leaving | Want | WantPublishers | ShareJoin
Answer = Wanted | Chunks | SearchAnswer | Tags

"""What shards say to one another: plain data, and how it stands on the bus.

    u32 length of what follows | u32 length of the head | head: MessagePack | raw bytes, as long as the head says

The heads are arrays that begin with their name. Raw bytes are rows and frames of chunks (docs/log-format.md), so a
batch costs the same whatever it holds. Knows no socket."""

from __future__ import annotations

import struct
from typing import Any

import msgspec

PREFIX = struct.Struct("<II")
Names = list[tuple[int, bytes]]


class Message(msgspec.Struct, frozen=True, array_like=True):
    """One thing said."""


# Beginning


class Hello(Message, frozen=True, tag="hello"):
    """The first thing each side says. incarnation: of this run of the shard; partitions: index -> (first lsn, next lsn)
    of those that it owns."""

    shard: int
    incarnation: int
    partitions: dict[int, tuple[int, int]]


class Begin(Message, frozen=True, tag="begin"):
    """Send what these filters match, of each partition from its lsn on.

    shares: whose home the other one is: key -> (filter, members here); handed: what these have, (partition, lsns)"""

    filters: list[str]
    cursors: dict[int, int]
    shares: dict[str, tuple[str, int]]
    handed: dict[str, list[tuple[int, int, int]]]


class Resume(Message, frozen=True, tag="resume"):
    """How much of what I handed to you is in your log? lsn: before it there is nothing that you have not told of."""

    partition: int
    lsn: int


class Resumed(Message, frozen=True, tag="resumed"):
    """sequence: what is in the log; 0: nothing since the lsn"""

    partition: int
    sequence: int


# Publishing to a partition's owner


class Published(Message, frozen=True, tag="published"):
    """Records for a partition, with the sender's numbers of topics and publishers; those that are new come with names.

    Raw: rows, frames, tags."""

    partition: int
    sequence: int
    count: int
    flags: int
    topics: Names
    publishers: Names
    rows_len: int
    frames_len: int


class Numbered(Message, frozen=True, tag="numbered"):
    """What the owner calls publishers: (the sender's number, the owner's)."""

    partition: int
    publishers: list[tuple[int, int]]


class Mark(Message, frozen=True, tag="mark"):
    """How far a partition has come. sequence: what was handed over up to it is committed; live_lsn: everything wanted
    below has been sent, 0 when that is not known."""

    partition: int
    sequence: int
    live_lsn: int
    committed_lsn: int
    first_lsn: int


class RetainedFull(Message, frozen=True, tag="retained_full"):
    """Whether a partition may retain nothing more."""

    partition: int
    full: bool


class Refusing(Message, frozen=True, tag="refusing"):
    """Whether a partition takes records. why: empty when it does; full: for want of room"""

    partition: int
    full: bool
    why: str


# Subscribing to a partition's owner


class Want(Message, frozen=True, tag="want"):
    """Send what these filters match as well; answered with `Wanted`, once that is so. marks: and marks soon."""

    request: int
    filters: list[str]
    marks: bool = False


class Wanted(Message, frozen=True, tag="wanted"):
    request: int


class Unwant(Message, frozen=True, tag="unwant"):
    filters: list[str]


class WantPublishers(Message, frozen=True, tag="publishers?"):
    """Tell who has published to your partitions, and from now on who does; answered with `Wanted`, once it is told."""

    request: int


class Publishers(Message, frozen=True, tag="publishers"):
    """Client ids of a partition's publishers, from number `first` on."""

    partition: int
    first: int
    names: list[bytes]


class Rows(Message, frozen=True, tag="rows"):
    """A chunk, frames that nobody wants left out. topics: names of ids that were not used before. Raw: rows, frames."""

    partition: int
    base_lsn: int
    count: int
    base_ts: int
    flags: int
    topics: Names
    rows_len: int


# Shared subscriptions: between their home and the shards that have members


class ShareJoin(Message, frozen=True, tag="join"):
    """A member is about to be here: answered with `Wanted`, once the share begins."""

    request: int
    key: str
    topic_filter: str


class ShareWeight(Message, frozen=True, tag="weight"):
    key: str
    topic_filter: str
    weight: int


class ShareParts(Message, frozen=True, tag="parts"):
    """From the home: these records are for members of yours. (partition, first lsn, next lsn)"""

    key: str
    ranges: list[tuple[int, int, int]]


class ShareBack(Message, frozen=True, tag="back"):
    """To the home: nobody here can take these, nor any others for now. early: there is no member here (yet)"""

    key: str
    ranges: list[tuple[int, int, int]]
    early: bool = False


class ShareLeft(Message, frozen=True, tag="left"):
    """From the home: it has heard that there is no member any more, and has taken back what was outstanding."""

    key: str


class ShareReady(Message, frozen=True, tag="ready"):
    key: str


class ShareDone(Message, frozen=True, tag="done"):
    """To the home: members here have these, and that is written down."""

    key: str
    ranges: list[tuple[int, int, int]]


# Questions to a partition's owner, and answers


class ReadFrom(Message, frozen=True, tag="read"):
    """Whole chunks from the one with `lsn` on."""

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


class Chunks(Message, frozen=True, tag="chunks"):
    request: int
    partition: int
    first_lsn: int
    topics: Names
    pieces: list[Piece]
    fault: str = ""


class FindStart(Message, frozen=True, tag="find"):
    """Where a replay begins: at a time, or at a topic's offset. retained: and what a filter had retained there"""

    request: int
    ts_us: int | None
    topic: bytes | None
    offset: int | None
    retained: str | None


class FindRetained(Message, frozen=True, tag="retained?"):
    """What a filter has retained now. below: partition -> lsn"""

    request: int
    topic_filter: str
    below: dict[int, int]


class RetainedItem(msgspec.Struct, frozen=True, array_like=True):
    topic: str
    partition: int
    lsn: int
    base_ts: int
    row: bytes
    frame: bytes


class Found(Message, frozen=True, tag="found"):
    """lsns: partition -> lsn. Retained messages may come in several answers; the last one has `more` false."""

    request: int
    lsns: dict[int, int]
    retained: list[RetainedItem]
    more: bool = False
    fault: str = ""


class FindTags(Message, frozen=True, tag="tags?"):
    """Inbound QoS 2 messages of the asker's sessions from these lsns on, once everything handed over is committed."""

    request: int
    from_lsns: dict[int, int]


class Tags(Message, frozen=True, tag="tags"):
    request: int
    tags: list[tuple[str, int]]


# What the broker tells of itself


class Counts(msgspec.Struct, frozen=True, array_like=True):
    """What a shard has counted since it began. docs/sys.md says what each number is."""

    packets_in: int = 0
    packets_out: int = 0
    published: int = 0
    delivered: int = 0
    dropped: int = 0
    refused: int = 0
    published_bytes: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    connections: int = 0
    sockets: int = 0
    expired: int = 0
    handed_over: int = 0
    taken_over: int = 0


class PartitionTally(msgspec.Struct, frozen=True, array_like=True):
    stream: str
    number: int
    first_lsn: int
    next_lsn: int
    committed_lsn: int


class Standing(msgspec.Struct, frozen=True, array_like=True):
    """What there is in a shard now. partitions: those that it owns"""

    connected: int = 0
    sessions: int = 0
    subscriptions: int = 0
    shared: int = 0
    retained: int = 0
    topics: int = 0
    log_bytes: int = 0
    partitions: list[PartitionTally] = []


class Tally(Message, frozen=True, tag="tally"):
    """To shard 0, which tells clients. incarnation: of the sender's run, as in `Hello`"""

    shard: int
    incarnation: int
    counts: Counts
    standing: Standing


# Retention and the end


class Needs(Message, frozen=True, tag="needs"):
    """The first record of each partition that a lasting session has not had."""

    lsns: dict[int, int]


class Leaving(Message, frozen=True, tag="leaving"):
    """Records of a partition of mine are about to go: answered with `Wanted`, once what readers of yours lose by it is
    counted."""

    request: int
    partition: int
    next_lsn: int


class Trimmable(Message, frozen=True, tag="trimmable"):
    """What the sender's log holds, and which finished segments may go for room: (µs of the first record, bytes), the
    oldest of all its partitions."""

    log_bytes: int
    oldest: list[tuple[int, int]]


class Drained(Message, frozen=True, tag="drained"):
    """The sender stops, and nothing more will be published by it."""


AnyMessage = (
    Hello | Begin | Resume | Resumed | Published | Numbered | Mark | Refusing | RetainedFull | Want | Wanted | Unwant
    | Rows | ReadFrom
    | Chunks | FindStart | FindRetained | Found | FindTags | Tags | Needs | Trimmable | Drained | ShareJoin
    | ShareWeight
    | ShareParts | ShareBack | ShareReady | ShareDone | ShareLeft | Tally | Leaving | WantPublishers | Publishers
)  # fmt: skip

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(AnyMessage)


def encode(message: Any, *raw: Any) -> list[Any]:
    """The buffers that carry a message, without copying the raw ones."""
    head = _encoder.encode(message)
    size = 4 + len(head) + sum(map(len, raw))
    return [PREFIX.pack(size, len(head)) + head, *[part for part in raw if len(part)]]


def decode(view: memoryview) -> tuple[Any, memoryview]:
    """The message in a whole frame without its first u32, and the raw bytes behind it. raises: ValueError"""
    head = int.from_bytes(view[:4], "little")
    return _decoder.decode(view[4 : 4 + head]), view[4 + head :]

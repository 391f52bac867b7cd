"""What is written down of sessions and retained messages, a fact at a time. docs/session-journal.md.

A record of the journal is a list of facts in MessagePack. Each is an array that begins with its name; fields are only
ever added at the end, with a default. Knows no live object and no file.

`number` is a session's, given by the journal. Vectors have an entry a partition, in the order of the last `Layout`.
A code is what the in-flight window keeps of a message: reader number << 6 | partition, bit 31 for a retained one."""

from __future__ import annotations

import msgspec


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """One line of the journal."""


class Layout(Entry, frozen=True, tag="layout"):
    """Which partitions the vectors from here on speak of: "<stream>/g<generation>/p<partition>" each."""

    partitions: tuple[str, ...]


class Opened(Entry, frozen=True, tag="opened"):
    """A client is connected with this session. fresh: forget what was known of the number.

    mount, user: whose it is (`rumq.session.state.session_owner`); mount None: written before sessions had owners"""

    number: int
    client_id: str
    version: int
    expiry_seconds: int
    fresh: bool
    mount: str | None = None
    user: str | None = None


class Author(msgspec.Struct, frozen=True, array_like=True):
    """Who a client came as, so that rules can be asked about it after a restart. listener: name of its entrance

    certificate: common name, subject and further names; empty for none"""

    user: str | None
    groups: list[str]
    certificate: list[str]
    listener: str


class Will(Entry, frozen=True, tag="will"):
    """The will of a connected client, as an MQTT 5 PUBLISH packet; empty: there is none any more."""

    number: int
    delay_seconds: int
    frame: bytes
    author: Author | None = None


class Left(Entry, frozen=True, tag="left"):
    """The client is gone. places: reader number -> the next lsn of each partition.

    redelivered_below: below these lsns messages may have been sent before a crash; empty when none may."""

    number: int
    at_us: int
    expiry_seconds: int
    places: dict[int, list[int]]
    redelivered_below: list[int] = []


class Ended(Entry, frozen=True, tag="ended"):
    number: int


class Subscribed(Entry, frozen=True, tag="subscribed"):
    """kind: "main", "late", "replay" or "share" (router.subscriber). start: of a replay that is not found yet.

    cursors: the next lsn of each partition for the reader; of a share, for the share itself."""

    number: int
    asked: str
    topic_filter: str
    qos: int
    no_local: bool
    retain_as_published: bool
    identifier: int
    kind: str
    reader: int
    cursors: list[int]
    start: tuple[str, int] | None = None
    tells_publisher: bool = False


class Unsubscribed(Entry, frozen=True, tag="unsubscribed"):
    number: int
    asked: str


class Placed(Entry, frozen=True, tag="placed"):
    """The start of a replay has been found."""

    number: int
    reader: int
    cursors: list[int]


class Merged(Entry, frozen=True, tag="merged"):
    """A late reader has caught up: the main one has its subscription from here on."""

    number: int
    asked: str
    reader: int


class Sent(Entry, frozen=True, tag="sent"):
    """Messages of QoS 1 and 2 that were given packet ids: message number s has packet id s mod 65,535 + 1.

    states: u8 each, the QoS; lsns: u64 each"""

    number: int
    code: int
    first: int
    states: bytes
    lsns: bytes


class Acknowledged(Entry, frozen=True, tag="acked"):
    """u32 each, in order: first byte of the packet << 16 | packet id. PUBREL ends an inbound QoS 2 message; 0 instead
    of a first byte: the client refused the message."""

    number: int
    acks: bytes


class Open(Entry, frozen=True, tag="open"):
    """Every inbound QoS 2 packet id that waits for PUBREL, u16 each."""

    number: int
    packet_ids: bytes


class Window(Entry, frozen=True, tag="window"):
    """What is in flight to a client, from message number `first` on: states u8, lsns u64, codes u32."""

    number: int
    first: int
    states: bytes
    lsns: bytes
    codes: bytes


class Shared(Entry, frozen=True, tag="shared"):
    """A shared subscription has a member in another shard now. cursors: the next lsn of each partition;
    returned: (partition, first lsn, next lsn) to be handed out again"""

    asked: str
    cursors: list[int]
    returned: list[tuple[int, int, int]] = []


class SharedCheckpoint(msgspec.Struct, frozen=True, array_like=True):
    """Where a shared subscription stands. returned: (partition, first lsn, next lsn) to be handed out again."""

    cursors: list[int]
    returned: list[tuple[int, int, int]]


class Checkpoint(Entry, frozen=True, tag="tide"):
    """Where everybody stood: connected sessions' readers at `live` (`committed` if they learn offsets), but for those
    in `behind` (session -> reader -> cursors).

    next_lsns: inbound QoS 2 messages below are in `Open`, `Acknowledged`; retained: retained messages below are in the
    last snapshot"""

    at_us: int
    next_lsns: list[int]
    live: list[int]
    committed: list[int]
    retained: list[int]
    behind: dict[int, dict[int, list[int]]]
    shares: dict[str, SharedCheckpoint]


class Retained(Entry, frozen=True, tag="retained"):
    """One retained message, for a snapshot."""

    partition: int
    lsn: int
    base_ts: int
    topic: str
    row: bytes
    frame: bytes


class SnapshotBegun(Entry, frozen=True, tag="begun"):
    """From here on everything is written down once more, in pieces."""


class SnapshotEnded(Entry, frozen=True, tag="snapshot"):
    """What is before the record `begun_lsn` is not needed any more. retained: as in `Checkpoint`."""

    begun_lsn: int
    retained: list[int]


AnyFact = (
    Layout | Opened | Will | Left | Ended | Subscribed | Unsubscribed | Placed | Merged | Sent | Acknowledged | Open
    | Window | Shared | Checkpoint | Retained | SnapshotBegun | SnapshotEnded
)  # fmt: skip

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[AnyFact])


def encode_entries(facts: list[AnyFact]) -> bytes:
    return _encoder.encode(facts)


def decode_entries(record: bytes | memoryview) -> list[AnyFact]:
    """raises: ValueError for what is no list of facts."""
    return _decoder.decode(record)

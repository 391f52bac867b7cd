"""The entries of the session journal, which are its on-disk format. docs/reference/session-journal.md.

A record of the journal is a MessagePack list of entries. Each is an array that begins with its tag; fields are only
ever added at the end, with a default.

number: of the session, assigned by the journal. Vectors have one element per partition, in the order of the last
`Layout`. Codes are those of `router.readers.slots`."""

from __future__ import annotations

import msgspec

from rumq.session.state.wills import Author

FOREVER_US = (1 << 63) - 1


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """One element of a record."""


class StandingOrder(msgspec.Struct, frozen=True, array_like=True):
    """What the operator has ordered of the shard, in force until it is taken back or its time is over.

    what: "ban", "drain" or "trace"; others are skipped; kind, name: whom it names, empty for a drain
    until_us: when it is over, µs since 1970; 0: it is taken back; FOREVER_US: it is over when it is taken back
    seconds: how long it has to last, as of this entry"""

    what: str
    kind: str = ""
    name: str = ""
    until_us: int = 0
    seconds: float = 0.0

    def seconds_left(self, now_us: int) -> float:
        """0 or less: it is over. A wall clock that was set back makes no order longer than it was given."""
        left = (self.until_us - now_us) / 1e6
        return left if self.until_us == FOREVER_US else min(left, self.seconds)


class KeptValue(msgspec.Struct, frozen=True, array_like=True):
    """What another process of this node has the journal keep, by name: `rumq.shards.admin.kept_values`.

    value: empty: it is kept no longer"""

    name: bytes
    value: bytes = b""


class Layout(Entry, frozen=True, tag="layout"):
    """The partitions of the vectors that follow: "<stream>/g<generation>/p<partition>" each.

    orders: given or taken back since the last entry; of a snapshot all that are in force. They are here because a
    version that does not know them skips a field, but refuses a journal with a tag that it does not know
    last_number: of a session, at the beginning of a snapshot: what is before it goes, with those that have ended
    kept: since the last entry; of a snapshot all. They are here for the same reason as orders"""

    partitions: tuple[str, ...]
    orders: tuple[StandingOrder, ...] = ()
    last_number: int = 0
    kept: tuple[KeptValue, ...] = ()


class SessionOpened(Entry, frozen=True, tag="opened"):
    """A client is connected with this session. fresh: discard earlier entries with this number.

    mount, user: the owner (`rumq.session.state.session_owner`); mount None: written before sessions had owners"""

    number: int
    client_id: str
    version: int
    expiry_seconds: int
    fresh: bool
    mount: str | None = None
    user: str | None = None


class WillEntry(Entry, frozen=True, tag="will"):
    """The will of a connected client, as an MQTT 5 PUBLISH packet; empty: the will is deleted."""

    number: int
    delay_seconds: int
    frame: bytes
    author: Author | None = None


OPEN_END = 1 << 62  # an lsn beyond all others


class Left(Entry, frozen=True, tag="left"):
    """The client has disconnected. cursors: reader number -> the next lsn of each partition

    redelivered_below: messages below these lsns may have been sent before a crash; `OPEN_END`: those below where the
    owner of the partition, which is missing, turns out to end; empty for none
    moving_seconds: the connection goes on at the next leader, which keeps the session and its will for so long until it
    comes; 0: it has ended"""

    number: int
    at_us: int
    expiry_seconds: int
    cursors: dict[int, list[int]]
    redelivered_below: list[int] = []
    moving_seconds: int = 0


class SessionEnded(Entry, frozen=True, tag="ended"):
    number: int


class Subscribed(Entry, frozen=True, tag="subscribed"):
    """kind: "main", "late", "replay" or "share" (router.readers.subscriber); asked: the filter as the client wrote it

    cursors: the next lsn of each partition, of the reader or of the whole share; start: of a replay that has no
    cursors yet"""

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
    tells_end: bool = False
    tells_place: bool = False


class Unsubscribed(Entry, frozen=True, tag="unsubscribed"):
    number: int
    asked: str


class ReplayPlaced(Entry, frozen=True, tag="placed"):
    """The cursors at the start of a replay have been found."""

    number: int
    reader: int
    cursors: list[int]


class ReaderMerged(Entry, frozen=True, tag="merged"):
    """A late reader has caught up: its subscription moves to the main reader."""

    number: int
    asked: str
    reader: int


class Sent(Entry, frozen=True, tag="sent"):
    """Messages of QoS 1 and 2 that were assigned packet ids: message number s has packet id s mod 65,535 + 1.

    states: u8 each, the QoS; lsns: u64 each"""

    number: int
    code: int
    first: int
    states: bytes
    lsns: bytes


class Acknowledged(Entry, frozen=True, tag="acked"):
    """Acknowledgements in order, u32 each: first byte of the packet << 16 | packet id. PUBREL ends an inbound QoS 2
    message; 0 instead of a first byte: the client refused the message."""

    number: int
    acks: bytes


class OpenPacketIds(Entry, frozen=True, tag="open"):
    """All inbound QoS 2 packet ids that wait for PUBREL, u16 each.

    released: packet ids whose PUBREL came, once for each, of messages in partitions whose owners had not said yet what
    they have (`rumq.shards.recovery.undecided`); u16 each, and empty otherwise"""

    number: int
    packet_ids: bytes
    released: bytes = b""


class WindowEntry(Entry, frozen=True, tag="window"):
    """The in-flight window of a client, from message number `first` on: states u8, lsns u64, codes u32."""

    number: int
    first: int
    states: bytes
    lsns: bytes
    codes: bytes


class Shared(Entry, frozen=True, tag="shared"):
    """A shared subscription has got a member in another shard. cursors, returned: as of `SharedCheckpoint`"""

    asked: str
    cursors: list[int]
    returned: list[tuple[int, int, int]] = []


class SharedCheckpoint(msgspec.Struct, frozen=True, array_like=True):
    """cursors: the next lsn of each partition; returned: (partition, first lsn, next lsn) to assign again

    live: partitions at whose end it is: with each later checkpoint that does not name the group its cursor there is
    that of `Checkpoint.live`. A version that does not know the field reads again what nobody of the group wanted"""

    cursors: list[int]
    returned: list[tuple[int, int, int]]
    live: list[int] = []


class Checkpoint(Entry, frozen=True, tag="tide"):
    """The cursors of all readers of connected sessions: `live` (`committed` for replays), except those in `behind`
    (session -> reader -> cursors).

    next_lsns: inbound QoS 2 messages below are in `OpenPacketIds` and `Acknowledged`; retained: retained messages below
    are in the last snapshot; shares: those that have moved since the last checkpoint of this run, or have something to
    assign again; in the first one of a snapshot all
    runs: (incarnation, epoch) of the run of each partition's owner that all lsns here and in entries up to the next
    checkpoint are of; (0, 0): of this shard's own, or of an owner that was not met; empty: not known"""

    at_us: int
    next_lsns: list[int]
    live: list[int]
    committed: list[int]
    retained: list[int]
    behind: dict[int, dict[int, list[int]]]
    shares: dict[str, SharedCheckpoint]
    runs: list[tuple[int, int]] = []


class RetainedEntry(Entry, frozen=True, tag="retained"):
    """One retained message of a snapshot."""

    partition: int
    lsn: int
    base_ts: int
    topic: str
    row: bytes
    frame: bytes


class SnapshotBegun(Entry, frozen=True, tag="begun"):
    """A snapshot begins; its parts are the records that follow."""


class SnapshotEnded(Entry, frozen=True, tag="snapshot"):
    """Records before `begun_lsn` are no longer needed. retained: as of `Checkpoint`"""

    begun_lsn: int
    retained: list[int]


JournalEntry = (
    Layout | SessionOpened | WillEntry | Left | SessionEnded | Subscribed | Unsubscribed | ReplayPlaced | ReaderMerged
    | Sent | Acknowledged | OpenPacketIds | WindowEntry | Shared | Checkpoint | RetainedEntry | SnapshotBegun
    | SnapshotEnded
)  # fmt: skip

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[JournalEntry])


def encode_entries(entries: list[JournalEntry]) -> bytes:
    return _encoder.encode(entries)


def decode_entries(record: bytes | memoryview) -> list[JournalEntry]:
    """raises: ValueError for anything but a list of entries"""
    return _decoder.decode(record)

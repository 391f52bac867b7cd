"""The rows of answers: one struct for each kind of thing that a broker has. Names end in their unit."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Struct

from rumq.admin.units import field
from rumq.tracing.spans import Span


class PartitionRow(Struct, kw_only=True):
    """A partition, as the shard that owns it sees it."""

    stream: Annotated[str, field("its stream")]
    partition: Annotated[int, field("its number in the stream")]
    shard: Annotated[int, field("the shard that writes it")] = 0
    durability: Annotated[str, field("what an acknowledged message survives: process, disk, quorum or memory")]
    first_lsn: Annotated[int, field("the first record that is kept", "lsn")]
    next_lsn: Annotated[int, field("the end, exclusive", "lsn")]
    committed_lsn: Annotated[int, field("what is below may be acknowledged", "lsn")]
    topics: Annotated[int, field("topics that it knows", "topics")]
    topics_max: Annotated[int | None, field("topics that the stream may have; null: any number", "topics")]
    segments: Annotated[int, field("its files", "segments")]
    bytes: Annotated[int, field("of its files on disk", "bytes")] = 0
    pending_bytes: Annotated[int, field("appended and not yet written", "bytes")] = 0
    first_time_us: Annotated[int, field("time of the oldest record; 0: none", "µs since 1970")] = 0
    last_time_us: Annotated[int, field("time of the newest record; 0: none", "µs since 1970")] = 0
    offline: Annotated[str | None, field("why it accepts nothing; null: it does")]


class StreamRow(Struct, kw_only=True):
    """A stream, all of its partitions together."""

    stream: Annotated[str, field("its name")]
    durability: Annotated[str, field("what an acknowledged message survives")]
    partitions: Annotated[int, field("among which its topics are divided", "partitions")]
    records: Annotated[int, field("records kept", "records")]
    bytes: Annotated[int, field("of its files on disk", "bytes")]
    pending_bytes: Annotated[int, field("appended and not yet written", "bytes")]
    topics: Annotated[int, field("topics known", "topics")]
    segments: Annotated[int, field("files", "segments")]
    offline: Annotated[int, field("partitions that accept nothing", "partitions")]


class SegmentRow(Struct, kw_only=True):
    """A segment: one file of a partition."""

    stream: str
    partition: int
    file: Annotated[str, field("the name of the file, without its directory")]
    base_lsn: Annotated[int, field("its first record", "lsn")]
    end_lsn: Annotated[int | None, field("its end, exclusive; null: records are appended to it", "lsn")]
    bytes: Annotated[int, field("on disk", "bytes")]
    first_time_us: Annotated[int, field("time of its first record; 0: none", "µs since 1970")]
    sealed: Annotated[bool, field("whether it is finished and checksummed as a whole")]
    indexed: Annotated[bool, field("whether it has an index of its topics")]


class ShardRow(Struct, kw_only=True):
    """A shard: one process of the broker."""

    shard: int
    pid: Annotated[int, field("of its process")]
    ready: Annotated[bool, field("sessions of earlier runs are here, and clients are accepted")]
    accepting: Annotated[bool, field("messages are accepted: no partition is offline and the disk has room")]
    draining: Annotated[bool, field("clients are refused and disconnected")]
    uptime_seconds: Annotated[float, field("since the process began", "seconds")]
    memory_bytes: Annotated[int, field("of the process, without mapped files", "bytes")]
    connected: Annotated[int, field("clients that are connected", "clients")]
    sessions: Annotated[int, field("sessions, with and without a connection", "sessions")]
    retained: Annotated[int, field("retained messages of its partitions", "messages")]
    topics: Annotated[int, field("topics of its partitions", "topics")]
    log_bytes: Annotated[int, field("of its partitions on disk", "bytes")]
    undelivered: Annotated[int, field("messages that were not delivered (the ledger)", "messages")]
    handed_over: Annotated[int, field("messages for partitions of other shards", "messages")]
    taken_over: Annotated[int, field("messages from clients of other shards", "messages")]
    turns: Annotated[int, field("turns of its loop", "turns")]


class ListenerRow(Struct, kw_only=True):
    """A listener, with the clients that came through it."""

    listener: Annotated[int, field("its number, from 0")]
    name: Annotated[str, field("host and port of the settings, or the path of a Unix socket")]
    mount_point: Annotated[str, field("prefix of all topics of its clients")]
    connections_max: Annotated[int, field("clients that may be connected", "clients")]
    connected: Annotated[int, field("clients that are connected", "clients")]


class ClientRow(Struct, kw_only=True):
    """A session, and its client if it is connected. Rates are averages of the last 10 s."""

    client_id: str
    user: Annotated[str | None, field("null: an anonymous client")]
    mount_point: Annotated[str | None, field("prefix of all of its topics")] = None
    connected: bool
    address: Annotated[str | None, field("of its connection; null: it is away")]
    listener: Annotated[int | None, field("number of the listener that it came through; null: it is away")] = None
    protocol: Annotated[str, field("3.1, 3.1.1 or 5")]
    keep_alive_seconds: Annotated[int | None, field("null: it is away", "seconds")]
    since_seconds: Annotated[float | None, field("since it connected; null: it is away", "seconds")]
    published: Annotated[int, field("messages that it published in this session", "messages")]
    delivered: Annotated[int, field("messages that it was sent in this session", "messages")]
    published_per_second: Annotated[float, field("", "messages/s")]
    delivered_per_second: Annotated[float, field("", "messages/s")]
    rate: Annotated[float, field("published and delivered", "messages/s")]
    bytes_in: Annotated[int, field("read from its connection", "bytes")] = 0
    bytes_out: Annotated[int, field("sent over its connection", "bytes")] = 0
    bytes_in_per_second: Annotated[float, field("", "bytes/s")] = 0.0
    bytes_out_per_second: Annotated[float, field("", "bytes/s")] = 0.0
    in_flight: Annotated[int, field("sent at QoS 1 or 2 and not acknowledged", "messages")]
    in_flight_max: Annotated[int | None, field("that may be in flight; null: it was sent none yet", "messages")] = None
    held_by: Annotated[
        str,
        field(
            "what it waits for: connection (it is away), quota (it is not read for now), socket (it does not read what "
            "it is sent), acknowledgements (all that may be in flight is), replay_quota; empty: nothing holds it"
        ),
    ] = ""
    behind_records: Annotated[int, field("of the log that it has not read yet", "records")]
    behind_seconds: Annotated[
        float | None,
        field("age of the oldest of them in partitions of its shard; null: there is none", "seconds"),
    ]
    undelivered: Annotated[int, field("messages that it lost (the ledger)", "messages")]
    subscriptions: Annotated[list[str], field("its filters, as it wrote them")]


class SubscriptionRow(Struct, kw_only=True):
    """A subscription of one session."""

    filter: Annotated[str, field("as the client wrote it")]
    kind: Annotated[str, field("live, late (catching up by itself), replay or shared")]
    qos: int
    no_local: bool = False
    identifier: Annotated[int, field("subscription identifier; 0: none")] = 0
    behind_records: Annotated[int | None, field("of its reader; null: its group has the place", "records")] = None


class SubscriberRow(Struct, kw_only=True):
    """A session with a subscription that a topic matches. Rules may still withhold messages."""

    client_id: str
    user: Annotated[str | None, field("null: an anonymous client")]
    connected: bool
    filter: Annotated[str, field("as the client wrote it")]
    kind: Annotated[str, field("live, late (catching up by itself), replay or shared")]
    qos: int


class WillRow(Struct, kw_only=True):
    """What is published for a client that vanishes."""

    topic: str
    qos: int
    retain: bool
    bytes: Annotated[int, field("of its payload", "bytes")]
    delay_seconds: Annotated[int, field("after the connection has ended", "seconds")] = 0


class InFlightRow(Struct, kw_only=True):
    """A message that was sent and is not acknowledged."""

    packet_id: int
    waits_for: Annotated[str, field("PUBACK, PUBREC or PUBCOMP")]
    partition: Annotated[int, field("index of its partition")]
    lsn: Annotated[int, field("its record", "lsn")]
    topic: Annotated[str | None, field("of the record; null: it is not in memory any more")] = None


class BucketRow(Struct, kw_only=True):
    """A rate limit of a client; below zero it is not read."""

    messages: Annotated[float | None, field("that it may send now; null: no limit", "messages")]
    bytes: Annotated[float | None, field("that it may send now; null: no limit", "bytes")]


class TopicRow(Struct, kw_only=True):
    """A topic."""

    topic: str
    stream: str
    partition: int
    records: Annotated[int, field("published so far, also those that retention removed", "records")]
    records_per_second: Annotated[float, field("of the last one to two minutes", "records/s")]


class LevelRow(Struct, kw_only=True):
    """The topics below one level of the tree."""

    level: Annotated[str, field("the text of this level")]
    prefix: Annotated[str, field("all levels up to this one: a topic, if `is_topic`")]
    is_topic: Annotated[bool, field("whether the prefix is a topic itself")]
    topics: Annotated[int, field("topics at and below it", "topics")]
    records: Annotated[int, field("published to them so far", "records")]


class GroupRow(Struct, kw_only=True):
    """A shared group, as its home shard sees it; members of all shards."""

    group: Annotated[str, field("as subscribed: $share/<name>/<filter>")]
    filter: Annotated[str, field("its topic filter")]
    members: Annotated[int, field("", "sessions")]
    behind_records: Annotated[int, field("that were not given to a member yet", "records")]
    returned_records: Annotated[int, field("that a member gave back", "records")]
    clients: Annotated[list[str], field("client ids of members, at most 100 a shard")]


class ChannelPlaceRow(Struct, kw_only=True):
    """Where the group of a channel stands, as its home shard sees it, if it has not handed out everything."""

    channel: Annotated[str, field("its id")]
    filter: Annotated[str, field("its topic filter")]
    lsns: Annotated[dict[str, int], field("by partition, such as queues/g1/p0: the first record not handed out", "lsn")]
    returned: Annotated[
        list[tuple[str, int, int]],
        field("partition, first lsn and the one behind the last of ranges that members gave back, at most 1,000"),
    ]


class RetainedRow(Struct, kw_only=True):
    """A retained message."""

    topic: str
    qos: int
    partition: Annotated[int, field("index of its partition")]
    lsn: Annotated[int, field("its record", "lsn")]
    time_us: Annotated[int, field("when it was published", "µs since 1970")]
    bytes: Annotated[int, field("of its payload", "bytes")]
    payload: Annotated[str, field("its first 1,024 bytes")]
    encoding: Annotated[str, field("of `payload`: utf-8 or base64")]


class ExportRow(Struct, kw_only=True):
    """The export of a partition to the lake."""

    stream: str
    partition: int
    exported_lsn: Annotated[int, field("what is below is in the lake", "lsn")]
    sealed_lsn: Annotated[int, field("what is below can be exported", "lsn")]
    behind_records: Annotated[int, field("sealed and not exported yet", "records")]


class UndeliveredRow(Struct, kw_only=True):
    """Messages that a client was not delivered."""

    reason: Annotated[str, field("expired, over_limit, retention, backlog_records_max, damaged or no_permission")]
    client_id: str
    topic: str
    records: int


class PendingRow(Struct, kw_only=True):
    """Messages that a client is still to get."""

    client_id: str | None
    topic: str
    records: int


class BanRow(Struct, kw_only=True):
    """What is refused with 0x8A."""

    kind: Annotated[str, field("client, user or address")]
    name: Annotated[str, field("the client id, the user name, or the address without port")]
    seconds: Annotated[float, field("that are left", "seconds")]
    refused: Annotated[int, field("logins refused so far", "logins")]


class EventRow(Struct, kw_only=True):
    """What a process reported: docs/reference/events.md."""

    cursor: Annotated[str, field("what follows this event is `after` it")]
    time_us: Annotated[int, field("when", "µs since 1970")]
    level: Annotated[str, field("debug, info, warning or error")]
    event: Annotated[str, field("its name, such as client.connected")]
    source: Annotated[str, field("the process: shard, gateway, or another of the broker")]
    shard: Annotated[int | None, field("its number; null: it is no shard")]
    fields: Annotated[dict[str, Any], field("of the event, by name")]


class TraceRow(Struct, kw_only=True):
    """A trace: packets of a client, or messages of a topic, reported as events."""

    kind: Annotated[str, field("client or topic")]
    name: str
    seconds: Annotated[float, field("that are left", "seconds")]
    reported: Annotated[int, field("events so far", "events")]
    left_out: Annotated[int, field("beyond the rate limit", "events")]


class Disk(Struct, kw_only=True):
    """The disk of the log."""

    free_bytes: Annotated[int | None, field("", "bytes")]
    total_bytes: Annotated[int | None, field("", "bytes")]
    free_wanted: Annotated[int | None, field("below this the oldest segments go, or publishers are refused", "bytes")]
    bytes_per_second: Annotated[float | None, field("how fast it fills", "bytes/s")]
    full_in_seconds: Annotated[float | None, field("null: nothing fills it", "seconds")]
    then: Annotated[str, field("what happens then")]


class ShardSpans(Struct, kw_only=True):
    """The newest spans of one shard."""

    shard: int
    sample_every: Annotated[int, field("one message in so many; 0: off", "messages")]
    spans: list[Span]
    next: Annotated[int, field("number of the last one: continue there")]
    lost: Annotated[int, field("that were overwritten before they were asked for", "spans")]

"""Answers of the admin interface: of one shard on the socket, of all of them once `merging` has added them up."""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct

from rumq.admin import cluster_rows as c
from rumq.admin import rows as r
from rumq.admin.figures import ShardFigures
from rumq.admin.units import field


class Answer(Struct, kw_only=True):
    pass


class ShardsAnswer(Answer, kw_only=True):
    """Of all shards, or of those that answered."""

    missing: Annotated[
        list[c.MissingShard], field("in a cluster: shards that have not answered, and are not in this answer")
    ] = []


class Page(ShardsAnswer, kw_only=True):
    """left_out: rows that match and are not in the answer"""

    left_out: Annotated[int, field("rows that match and are not in the answer", "rows")] = 0


class Status(ShardsAnswer, kw_only=True):
    version: str = ""
    shards: Annotated[int, field("", "processes")] = 0
    listeners: Annotated[list[str], field("addresses that accept clients")] = []
    uptime_seconds: Annotated[float, field("since the broker started", "seconds")] = 0.0
    disk: r.Disk | None = None
    memory_bytes: Annotated[int, field("of all shards", "bytes")]
    log_bytes: Annotated[int, field("of all segments", "bytes")]
    trimmed_for_space_records: Annotated[int, field("removed because the disk was full", "records")]
    disk_is_full: Annotated[int, field("shards that refuse publishers for want of space", "shards")]
    connected: Annotated[int, field("", "clients")]
    sessions: int
    retained: Annotated[int, field("", "messages")]
    undelivered: Annotated[int, field("", "messages")]
    handed_over: Annotated[int, field("messages for other shards", "messages")]
    taken_over: Annotated[int, field("messages from other shards", "messages")]
    partitions: list[r.PartitionRow]


class Shards(ShardsAnswer, kw_only=True):
    shards: list[r.ShardRow]


class Listeners(ShardsAnswer, kw_only=True):
    listeners: list[r.ListenerRow]


class Partitions(ShardsAnswer, kw_only=True):
    partitions: list[r.PartitionRow]


class Streams(ShardsAnswer, kw_only=True):
    streams: list[r.StreamRow]


class Segments(Page, kw_only=True):
    segments: list[r.SegmentRow]


class Clients(Page, kw_only=True):
    clients: list[r.ClientRow]


class ClientDetail(ShardsAnswer, kw_only=True):
    """One session; `found` is false if there is none."""

    found: bool
    client: r.ClientRow | None = None
    expires_seconds: Annotated[
        float | None, field("until an absent session ends; null: it is here, or never", "seconds")
    ] = None
    expiry_interval_seconds: Annotated[
        int | None, field("how long its session outlives its connection; null: for ever", "seconds")
    ] = None
    security: Annotated[
        str | None,
        field("TLS version and cipher of its connection; empty: none; null: it is away, or another process has it"),
    ] = None
    certificate: Annotated[str | None, field("subject of its certificate; null: it has sent none")] = None
    will: Annotated[list[r.WillRow], field("none or one")] = []
    paused: Annotated[bool, field("it is not read for now: a limit, or a request under way")] = False
    subscriptions: list[r.SubscriptionRow] = []
    in_flight: Annotated[list[r.InFlightRow], field("at most 200")] = []
    limits: Annotated[list[r.BucketRow], field("of the client, its user and its listener, as far as set")] = []
    undelivered: Annotated[list[r.UndeliveredRow], field("at most 200")] = []


class Waiting(ShardsAnswer, kw_only=True):
    """What a session is still to get, without what is in flight and without its shared groups."""

    found: bool
    messages: Annotated[
        int, field("that wait for it: counted in the first 32 MiB that it has not read", "messages")
    ] = 0
    at_most: Annotated[
        int, field("the same, and all records behind these 32 MiB; equal: everything was counted", "messages")
    ] = 0
    topics: Annotated[list[r.PendingRow], field("the 20 with the most")] = []


class Topics(Page, kw_only=True):
    topics: list[r.TopicRow]


class TopicTree(Page, kw_only=True):
    levels: list[r.LevelRow]


class Groups(Page, kw_only=True):
    groups: list[r.GroupRow]


class ChannelPlaces(Answer, kw_only=True):
    places: Annotated[list[r.ChannelPlaceRow], field("at most 10,000 of a shard")]


class Retained(Page, kw_only=True):
    """left_out: at least so many"""

    messages: list[r.RetainedRow]


class Exports(ShardsAnswer, kw_only=True):
    exports: list[r.ExportRow]


class Ledger(ShardsAnswer, kw_only=True):
    undelivered: list[r.UndeliveredRow]
    pending: list[r.PendingRow]


class Bans(ShardsAnswer, kw_only=True):
    bans: list[r.BanRow]


class Traces(ShardsAnswer, kw_only=True):
    traces: list[r.TraceRow]


class Events(ShardsAnswer, kw_only=True):
    """The newest last."""

    events: list[r.EventRow]
    cursor: Annotated[str, field("`after` it is what comes next")]
    lost: Annotated[int, field("after the given cursor and no longer kept, at least", "events")] = 0


class Spans(Answer, kw_only=True):
    shards: list[r.ShardSpans]


class Metrics(ShardsAnswer, kw_only=True):
    shards: list[ShardFigures]


class Ended(ShardsAnswer, kw_only=True):
    disconnected: Annotated[int, field("", "connections")]
    dropped: Annotated[int, field("", "sessions")]


class Done(ShardsAnswer, kw_only=True):
    """done: how many things the action applied to; 0: there was none"""

    done: int
    why: Annotated[str, field("why less was done than asked; empty: all was")] = ""


class Pong(ShardsAnswer, kw_only=True):
    shards: Annotated[int, field("that answered", "processes")]


class Subscribers(Page, kw_only=True):
    subscribers: list[r.SubscriberRow]


class Prepared(ShardsAnswer, kw_only=True):
    """What a shutdown would end, and a token for it."""

    token: Annotated[str, field("for `shutdown`, once")]
    seconds: Annotated[float, field("how long it is good", "seconds")]
    connected: Annotated[int, field("that would be disconnected", "clients")]
    pending_bytes: Annotated[int, field("appended and not yet written", "bytes")]


class Terms(ShardsAnswer, kw_only=True):
    terms: Annotated[list[c.TermRow], field("none for a broker alone")]


class Cluster(Answer, kw_only=True):
    """What the asked node knows of its cluster, and what the leaders say. A broker alone is not `enabled`."""

    enabled: bool
    cluster: Annotated[str, field("its name")] = ""
    id: str = ""
    node: Annotated[str, field("the node that was asked")] = ""
    replicas: Annotated[int, field("wanted of each shard", "copies")] = 0
    is_current: Annotated[
        bool, field("the control plane answers; else no leader can change, and this is how it last was")
    ] = False
    nodes: Annotated[list[c.NodeRow], field("those that live, and those that have copies and do not")] = []
    shards: list[c.ShardCopies] = []
    orders: Annotated[list[c.OrderRow], field("changes of copies that are under way")] = []
    control: c.ControlRow | None = None
    wrong: Annotated[list[str], field("what to act on, each as a sentence with the way out")] = []

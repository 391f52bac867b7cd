"""Requests of the admin interface: one struct each, with the bounds of its fields. `operations` has the table."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Struct

from rumq.admin.units import field, number, text

ROWS_MAX = 10_000  # of an answer, with those that are skipped
ROWS_USUAL = 100
BROADCAST_TEXT_MAX = 32 << 10  # a question to a cluster has room for 48 KiB

Client = Annotated[str, text("a client id")]
Pattern = Annotated[str | None, field("a client id, or a pattern with * and ?; null: all")]
Topic = Annotated[str | None, field("a topic filter; null: all")]
Limit = Annotated[int, number("rows at most", "rows", 1, ROWS_MAX)]
Offset = Annotated[int, number("rows to skip", "rows", 0, ROWS_MAX)]
Stream = Annotated[str, text("name of a stream", 64)]
Partition = Annotated[int, number("number of a partition of the stream", "", 0, 1 << 16)]
Lsn = Annotated[int, number("a record of the partition", "lsn", 0, (1 << 63) - 1)]
ClientSort = Literal[
    "client", "lag", "published", "delivered", "in-flight", "since", "rate", "messages", "bytes", "lost"
]
BAN_SECONDS_MAX = 31 * 86_400
TRACE_SECONDS_MAX = 3600
PREPARED_SECONDS_MAX = 3600


class Request(Struct, kw_only=True):
    """A request; unknown fields are ignored, so that a newer program can ask an older broker."""


class Nothing(Request, kw_only=True):
    """No parameters."""


class Paged(Request, kw_only=True):
    limit: Limit = ROWS_USUAL
    offset: Offset = 0


class Clients(Paged, kw_only=True):
    client: Pattern = None
    user: Annotated[str | None, field("only clients of this user; null: all")] = None
    sort: Annotated[ClientSort | None, field("null: by client id")] = None


class OneClient(Request, kw_only=True):
    client: Client


class Subscribers(Paged, kw_only=True):
    topic: Annotated[str, text("a topic, with the mount point of its listener if it has one", 65_535, 1)]


class Topics(Paged, kw_only=True):
    topic: Topic = None
    sort: Annotated[Literal["records", "rate", "topic"] | None, field("null: by records")] = None


class TopicTree(Paged, kw_only=True):
    prefix: Annotated[str, text("the levels above, without a slash at the end; empty: the first level")] = ""
    below_empty: Annotated[
        bool, field("with an empty prefix: what is below the empty first level, the topics that begin with /")
    ] = False


class Segments(Paged, kw_only=True):
    stream: Annotated[str | None, field("only of this stream; null: all")] = None
    partition: Annotated[int | None, field("only of this partition; null: all")] = None


class Groups(Paged, kw_only=True):
    client: Pattern = None


class Retained(Request, kw_only=True):
    topic: Annotated[str, text("a topic filter")] = "#"
    after: Annotated[str | None, field("continue after this topic; null: from the first")] = None
    limit: Annotated[int, number("rows at most", "rows", 1, 200)] = ROWS_USUAL


class Spans(Request, kw_only=True):
    after: Annotated[str, text("shard:number of the answer before, separated by commas; empty: all that is kept")] = ""
    limit: Annotated[int, number("spans of a shard at most", "spans", 1, 2_000)] = 200


class Ledger(Request, kw_only=True):
    client: Annotated[str | None, field("only this client, and what it is still to get; null: all")] = None
    topic: Annotated[str | None, field("only this topic; null: all")] = None


class Events(Request, kw_only=True):
    after: Annotated[str | None, field("cursor of an event or an answer; null: the newest")] = None
    level: Annotated[Literal["debug", "info", "warning", "error"], field("of this level and above")] = "debug"
    event: Annotated[str, text("names of events, with * and ?, such as client.*", 100, 1)] = "*"
    limit: Annotated[int, number("events at most", "events", 1, 2_000)] = 200


class Ban(Request, kw_only=True):
    kind: Literal["client", "user", "address"]
    name: Annotated[str, text("the client id, the user name, or the address without port", 65_535, 1)]
    seconds: Annotated[float, number("how long", "seconds", 1, BAN_SECONDS_MAX)] = 600.0


class Broadcast(Request, kw_only=True):
    clients: Annotated[str, text("a client id, or a pattern with * and ?", 1_024, 1)]
    topic: Annotated[str, text("of those clients, the ones that subscribe to it get the message", 1_024, 1)]
    payload: Annotated[str, text("text, or base64 as `encoding` says", BROADCAST_TEXT_MAX)] = ""
    encoding: Annotated[Literal["utf-8", "base64"], field("of the payload")] = "utf-8"
    content_type: Annotated[str, text("for clients of MQTT 5; empty: not said", 256)] = ""
    expiry_seconds: Annotated[int, number("for clients of MQTT 5; 0: it does not expire", "seconds", 0, 2**32 - 1)] = 0


class Unban(Request, kw_only=True):
    kind: Literal["client", "user", "address"]
    name: Annotated[str, text("as banned")]


class Reset(Request, kw_only=True):
    client: Client
    start: Annotated[str, text("earliest, latest, -1h, an RFC 3339 time, or an offset of one topic", 64, 1)]
    filter: Annotated[str | None, field("only this subscription, as the client wrote it; null: all")] = None


class OnePartition(Request, kw_only=True):
    stream: Stream
    partition: Partition = 0


class Trim(OnePartition, kw_only=True):
    below_lsn: Lsn


class Trace(Request, kw_only=True):
    kind: Literal["client", "topic"]
    name: Annotated[str, text("a client id, or a topic", 65_535, 1)]
    seconds: Annotated[float, number("how long", "seconds", 1, TRACE_SECONDS_MAX)] = 60.0


class Untrace(Request, kw_only=True):
    kind: Literal["client", "topic"]
    name: Annotated[str, text("as traced")]


class Prepare(Request, kw_only=True):
    seconds: Annotated[float, number("how long the token is good", "seconds", 1, PREPARED_SECONDS_MAX)] = 60.0


class Shutdown(Request, kw_only=True):
    graceful: Annotated[
        bool,
        field("tell clients, write and seal the log; false: end at once, as a kill: what was acknowledged stays"),
    ] = True
    token: Annotated[
        str | None, field("of `prepare`: refused if it is not the last one, or too old; null: no check")
    ] = None

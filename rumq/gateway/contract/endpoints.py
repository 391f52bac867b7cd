"""The endpoints that are not in the table of the admin interface, with their parameters and answers."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from rumq.admin import requests as q
from rumq.admin.answers import Answer, Streams
from rumq.admin.answers import Events as EventsAnswer
from rumq.admin.kafka_groups import KAFKA_OPERATIONS
from rumq.admin.operations import OPERATIONS, Role
from rumq.admin.topic_names import ANY_TOPIC, NO_TOPICS, Tells, TopicField
from rumq.admin.units import field, number, text
from rumq.gateway.contract.bridge_messages import Bridges, FindBridges
from rumq.gateway.contract.credential_messages import (
    MadeToken,
    MadeUser,
    NewToken,
    NewUser,
    OneToken,
    OneUser,
    Revoked,
    Tokens,
    Users,
)
from rumq.gateway.contract.endpoint import Endpoint
from rumq.gateway.contract.messages import Published
from rumq.gateway.contract.queue_table import QUEUE_ENDPOINTS
from rumq.gateway.records.record_rows import Record
from rumq.gateway.records.records import Records

Topic = Annotated[str, text("a topic name", 65_535, 1)]


class Fetch(q.Request, kw_only=True):
    topic: Annotated[str, text("a topic filter", 65_535, 1)]
    start: Annotated[str, text("earliest, latest, -1h, an RFC 3339 time, or an offset of one topic", 64, 1)] = (
        "earliest"
    )
    cursor: Annotated[str | None, field("of the answer before; then `start` does not count")] = None
    limit: Annotated[int, number("records at most", "records", 1, 1_000)] = 100
    contains: Annotated[
        str | None,
        field("only records whose payload has this text, in UTF-8; 200,000 records are looked at: go on with `cursor`"),
    ] = None
    wait: Annotated[float, number("how long to wait for a record if there is none", "seconds", 0, 25)] = 0.0


class TopicFetch(q.Request, kw_only=True):
    topic: Topic
    start: Annotated[
        str,
        text(
            "earliest, latest, -1h, an RFC 3339 time, or a number: so many records of the topic are left out, "
            "so that the id of the last one seen gives what follows it",
            64, 1,
        ),
    ] = msgspec.field(default="earliest", name="from")  # fmt: skip
    cursor: Annotated[str | None, field("of the answer before; then `from` does not count")] = None
    limit: Annotated[int, number("records at most", "records", 1, 1_000)] = 100
    contains: Annotated[str | None, field("only records whose payload has this text, in UTF-8")] = None
    wait: Annotated[
        float, number("how long to wait for a record if there is none, and for the topic", "seconds", 0, 25)
    ] = 0.0


class Publish(q.Request, kw_only=True):
    positions: Annotated[
        bool, field("answer where each message lies in the log, which takes some 50 ms; false: without")
    ] = True


class Events(q.Events, kw_only=True):
    wait: Annotated[float, number("how long to wait for an event if there is none", "seconds", 0, 25)] = 0.0


class PastRange(q.Request, kw_only=True):
    names: Annotated[str | None, field("of series, with commas; null: all")] = None
    seconds: Annotated[int, number("up to now", "seconds", 10, 14 * 86_400)] = 3_600
    points: Annotated[int, number("values of a series at most", "", 1, 1_000)] = 300


class Clear(q.Request, kw_only=True):
    topic: Annotated[str, text("a topic, or a topic filter", 65_535, 1)]
    after: Annotated[str | None, field("`next` of the answer before; null: from the first")] = None


class NotCleared(msgspec.Struct, kw_only=True):
    """A retained message that stays."""

    topic: str
    reason: Annotated[int, field("MQTT reason code")]
    why: str


class Cleared(Answer, kw_only=True):
    """The topics that matched have no retained message any more, as durably as a publish; their records stay."""

    done: Annotated[int, field("deleted", "messages")]
    refused: Annotated[int, field("that the broker did not let the token's user delete", "messages")] = 0
    first_refused: Annotated[list[NotCleared], msgspec.Meta(description="at most 20 of them")] = msgspec.field(
        default_factory=list
    )
    next: Annotated[str | None, field("1,000 were looked at: continue `after` it; null: that was all")] = None


class LastValue(q.Request, kw_only=True):
    topic: Topic


class Explain(q.Request, kw_only=True):
    action: Annotated[str, text("publish, subscribe, replay, retain or will", 32, 1)]
    topic: Topic
    user: Annotated[str | None, field("null: an anonymous client")] = None
    client: Annotated[str, text("a client id")] = ""


class EffectiveSetting(msgspec.Struct, kw_only=True):
    key: Annotated[str, field("such as log.linger_ms; streams by name, further listeners by number")]
    value: Annotated[Any, field("in force")]
    source: Annotated[str, field("default, the file, the environment, a flag, or [log] for keys of a stream")]
    line: Annotated[str, field("what it is for")] = ""
    default: Annotated[Any, field("null: it depends on another setting")] = None
    bounds: Annotated[str, field("unit and bounds, or what else is allowed")] = ""
    applies: Annotated[
        Literal["live", "new connections", "another listener", "restart"], field("what a change applies to")
    ] = "restart"
    waits: Annotated[bool, field("a reload has read another value, which waits for a restart")] = False
    after_restart: Annotated[Any, field("that value")] = None


class EffectiveSettingsAnswer(Answer, kw_only=True):
    """As the gateway has read them, with the broker's file, environment and flags."""

    settings: list[EffectiveSetting]


class RuleReason(msgspec.Struct, kw_only=True):
    """A rule that speaks of it; one that denies takes precedence over those that allow."""

    rule: Annotated[int, field("its number in the rules file, from 1")]
    effect: Annotated[str, field("allows or denies")]
    filter: Annotated[str, field("its topic filter, as written")]


class Rules(Answer, kw_only=True):
    rules: Annotated[bool, field("whether there are any; without, everything is allowed")]
    allowed: bool
    reasons: Annotated[list[RuleReason], field("in the order of the file; none: no rule allows it")]


class SeriesName(msgspec.Struct, kw_only=True):
    name: str
    unit: str
    help: str


class History(Answer, kw_only=True):
    """Value n of a series is of the step_seconds from start_us + n * step_seconds on"""

    start_us: Annotated[int, field("when the first value's time begins", "µs since 1970")]
    step_seconds: Annotated[int, field("of one value", "seconds")]
    series: Annotated[dict[str, list[float | None]], field("by name; null: not known")]
    names: Annotated[list[SeriesName], field("every series that there is")]


class Value(Answer, kw_only=True):
    """record: null if the topic has none that is kept"""

    record: Record | None


class Me(Answer, kw_only=True):
    """The token of the request."""

    name: str
    roles: list[Role]
    user: Annotated[str, field("as whom it publishes and reads records; empty: nobody in particular")]
    reads: Annotated[str, field("of all topics, what the rules let that user read: all, some or none")] = "all"


class Health(Answer, kw_only=True):
    """ok: with 503 it is false, and `why` says why"""

    ok: bool
    why: str = ""


# What the topic of a request allows; rows that are no such topics are not read at all.
RECORDS = Tells((TopicField("records.topic"),), TopicField("topic", "filter"), payloads=True)
VALUE = Tells((TopicField("record.topic"),), TopicField("topic"), payloads=True)
CLEARED = Tells((TopicField("first_refused.topic"),), TopicField("topic", "filter"), payloads=True)


ENDPOINTS = (
    Endpoint(
        "post",
        "/api/v1/actions/clear",
        "clear",
        "delete retained messages by filter, as the token's user: what its rules let it read and publish retained",
        "administer",
        Cleared,
        CLEARED,
        Clear,
    ),
    Endpoint(
        "post",
        "/api/v1/publish",
        "publish",
        "publish one message, or a batch of up to 1,000",
        "publish",
        Published,
        NO_TOPICS,
        Publish,
    ),
    Endpoint(
        "get",
        "/api/v1/records",
        "records",
        "records by topic and offset, or by time",
        "read",
        Records,
        RECORDS,
        Fetch,
    ),
    Endpoint(
        "get",
        "/api/v1/topics/{topic:path}/records",
        "topic_records",
        "the log of one topic, from a number, a time or a cursor on, which it can wait for",
        "read",
        Records,
        RECORDS,
        TopicFetch,
    ),
    Endpoint("get", "/api/v1/value", "value", "the newest record of a topic", "read", Value, VALUE, LastValue),
    Endpoint("get", "/api/v1/streams", "streams", "streams, their partitions added up", "read", Streams, NO_TOPICS),
    Endpoint(
        "get",
        "/api/v1/events",
        "events",
        "events of the broker after a cursor, which it can wait for",
        "read",
        EventsAnswer,
        OPERATIONS["events"].tells,
        Events,
    ),
    Endpoint(
        "get",
        "/api/v1/history",
        "history",
        "figures of the last hours and days, to plot",
        "read",
        History,
        NO_TOPICS,
        PastRange,
    ),
    Endpoint("get", "/api/v1/me", "me", "what the token of the request may do", "any", Me, NO_TOPICS),
    Endpoint(
        "get",
        "/api/v1/settings",
        "settings",
        "the settings in force, each with its source",
        "administer",
        EffectiveSettingsAnswer,
        NO_TOPICS,
    ),
    Endpoint(
        "get",
        "/api/v1/tokens",
        "tokens",
        "tokens of the gateway, without secrets",
        "administer",
        Tokens,
        NO_TOPICS,
    ),
    Endpoint(
        "post",
        "/api/v1/tokens",
        "make_token",
        "make a token; its secret is shown once",
        "administer",
        MadeToken,
        NO_TOPICS,
        NewToken,
    ),
    Endpoint(
        "delete",
        "/api/v1/tokens",
        "revoke_token",
        "remove a token; what it holds open ends",
        "administer",
        Revoked,
        NO_TOPICS,
        OneToken,
    ),
    Endpoint("get", "/api/v1/users", "users", "names of the password file", "administer", Users, NO_TOPICS),
    Endpoint(
        "post",
        "/api/v1/users",
        "make_user",
        "add a user to the password file, or change a password",
        "administer",
        MadeUser,
        NO_TOPICS,
        NewUser,
    ),
    Endpoint(
        "delete",
        "/api/v1/users",
        "revoke_user",
        "remove a user from the password file",
        "administer",
        Revoked,
        NO_TOPICS,
        OneUser,
    ),
    Endpoint(
        "get",
        "/api/v1/rules",
        "rules",
        "whether the rules of the gateway allow something, and why",
        "administer",
        Rules,
        NO_TOPICS,
        Explain,
    ),
    *(
        Endpoint(
            "post" if each.destroys else "get",
            f"/api/v1/actions/{name}" if each.destroys else f"/api/v1/{name}",
            name,
            each.summary,
            "administer",
            each.answer,
            NO_TOPICS,
            each.request,
        )
        for name, each in KAFKA_OPERATIONS.items()
    ),
    Endpoint(
        "get",
        "/api/v1/bridges",
        "bridges",
        "bridges to other brokers: how they are connected, and what they have relayed",
        "read",
        Bridges,
        ANY_TOPIC,
        FindBridges,
    ),
    *QUEUE_ENDPOINTS,
    Endpoint("get", "/healthz", "healthz", "the gateway's process answers", None, Health, NO_TOPICS),
    Endpoint("get", "/readyz", "readyz", "every shard answers and accepts messages", None, Health, NO_TOPICS),
    Endpoint("get", "/startupz", "startupz", "every shard has answered once", None, Health, NO_TOPICS),
)

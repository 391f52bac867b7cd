"""The table of the admin interface: every query and action, with its request, its answer and who may ask it.

The socket of a shard takes {"ask": name, ...the request's fields}, and "reader" where rules hold for who is told. What
is not in the table cannot be asked."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

import msgspec

from rumq.admin import answers as a
from rumq.admin import requests as q
from rumq.admin.topic_names import ANY_TOPIC, NO_TOPICS, Tells, TopicField
from rumq.errors import RumqError

Role = Literal["read", "publish", "administer"]
Raw = dict[str, Any]


READER = "reader"
UNKNOWN = "unknown"  # in the reply of a shard that has nothing of the name that was asked for


class AskingUser(msgspec.Struct, kw_only=True):
    """Who is told of topics: the rules of the gateway's clients hold for this user. user: null for an anonymous one"""

    user: str | None


class Operation(NamedTuple):
    """A query, or an action that changes something. role: of those who may ask

    tells: which topics its answer names; there is no default, so that nobody forgets to say it
    rows: the list of an answer that is a page, of which `key` orders it
    destroys: what an action cannot give back, for a question before it; empty: nothing"""

    name: str
    request: type[q.Request]
    answer: type[a.Answer]
    summary: str
    tells: Tells
    role: Role = "read"
    rows: str = ""
    destroys: str = ""

    @property
    def is_action(self) -> bool:
        return self.role == "administer"


def action(name: str, request: type[q.Request], answer: type[a.Answer], summary: str, destroys: str = "") -> Operation:
    """Its answer counts what was done, for those who may administer."""
    return Operation(name, request, answer, summary, NO_TOPICS, "administer", destroys=destroys)


OF_A_CLIENT = (
    TopicField("client.subscriptions", "filter"),
    TopicField("subscriptions.filter", "filter"),
    TopicField("undelivered.topic"),
    TopicField("in_flight.topic"),
    TopicField("will.topic"),
)


TABLE = (
    Operation("status", q.Nothing, a.Status, "the whole broker in a few numbers", NO_TOPICS),
    Operation(
        "clients",
        q.Clients,
        a.Clients,
        "sessions and their clients, searched, sorted, paged",
        Tells((TopicField("clients.subscriptions", "filter"),)),
        rows="clients",
    ),
    Operation(
        "topics",
        q.Topics,
        a.Topics,
        "topics with records and rate, searched, sorted, paged",
        Tells((TopicField("topics.topic"),), TopicField("topic", "filter"), in_shards=True),
        rows="topics",
    ),
    Operation(
        "ledger",
        q.Ledger,
        a.Ledger,
        "messages that were not delivered, by reason, client and topic",
        Tells((TopicField("undelivered.topic"), TopicField("pending.topic")), TopicField("topic")),
    ),
    action("disconnect", q.OneClient, a.Ended, "close a client's connection (0x98); its session stays"),
    action(
        "drop",
        q.OneClient,
        a.Ended,
        "close a client's connection and delete its session",
        "its subscriptions and what it has not received yet are lost",
    ),
    Operation("shards", q.Nothing, a.Shards, "processes: ready, memory, clients, turns", NO_TOPICS),
    Operation("listeners", q.Nothing, a.Listeners, "listeners with their clients", NO_TOPICS),
    Operation("partitions", q.Nothing, a.Partitions, "partitions with their place, size and health", NO_TOPICS),
    Operation(
        "segments",
        q.Segments,
        a.Segments,
        "files of partitions, the newest first",
        NO_TOPICS,
        rows="segments",
    ),
    Operation(
        "client",
        q.OneClient,
        a.ClientDetail,
        "one session: subscriptions, in flight, limits, losses",
        Tells(OF_A_CLIENT),
    ),
    Operation(
        "tree",
        q.TopicTree,
        a.TopicTree,
        "one level of the topic tree",
        Tells((TopicField("levels.prefix", "level"),), TopicField("prefix", "level"), in_shards=True),
        rows="levels",
    ),
    Operation(
        "groups",
        q.Groups,
        a.Groups,
        "shared groups with members and lag",
        Tells((TopicField("groups.filter", "filter"),)),
        rows="groups",
    ),
    Operation(
        "channel_places",
        q.Nothing,
        a.ChannelPlaces,
        "channels of queues that have messages to hand out, and where they stand",
        Tells((TopicField("places.filter", "filter"),)),
    ),
    Operation(
        "retained",
        q.Retained,
        a.Retained,
        "retained messages by filter, in the order of topics",
        Tells((TopicField("messages.topic"),), TopicField("topic", "filter"), payloads=True, in_shards=True),
    ),
    Operation("exports", q.Nothing, a.Exports, "how far each partition is exported to the lake", NO_TOPICS),
    Operation("bans", q.Nothing, a.Bans, "what is banned, and for how long", NO_TOPICS),
    Operation("traces", q.Nothing, a.Traces, "what is traced, and for how long", ANY_TOPIC),
    Operation("events", q.Events, a.Events, "the newest events of the broker, or those after a cursor", ANY_TOPIC),
    Operation(
        "cluster",
        q.Nothing,
        a.Cluster,
        "nodes, copies of shards and the control plane of a cluster",
        NO_TOPICS,
    ),
    Operation("terms", q.Nothing, a.Terms, "copies of the shards of a cluster, as their leaders see them", NO_TOPICS),
    Operation(
        "spans",
        q.Spans,
        a.Spans,
        "the newest spans of messages that are traced with OpenTelemetry",
        ANY_TOPIC,
    ),
    Operation("metrics", q.Nothing, a.Metrics, "counters and histograms of every shard", NO_TOPICS),
    action(
        "ban",
        q.Ban,
        a.Done,
        "refuse a client id, user or address (0x8A) for a time, also after a restart",
        "connections of whom it names are closed, and refused as long as the ban lasts",
    ),
    action("unban", q.Unban, a.Done, "lift a ban"),
    action("reset", q.Reset, a.Done, "have a session's subscriptions start again at another place"),
    action("seal", q.OnePartition, a.Done, "finish the active segment of a partition and begin another"),
    action("trim", q.Trim, a.Done, "remove segments whose records are all below an lsn", "their records are lost"),
    action(
        "trace",
        q.Trace,
        a.Done,
        "report a client's packets, or a topic's messages, as events for a time, also after a restart",
    ),
    action("untrace", q.Untrace, a.Done, "end a trace"),
    action(
        "drain",
        q.Nothing,
        a.Done,
        "refuse new clients (0x88) and disconnect those that are here, until `undrain`, also after a restart",
    ),
    action("undrain", q.Nothing, a.Done, "accept clients again"),
    action("reload", q.Nothing, a.Done, "read settings, users, rules and certificates again, as SIGHUP does"),
    action("prepare", q.Prepare, a.Prepared, "a token for a shutdown, and what the shutdown would end"),
    action(
        "shutdown",
        q.Shutdown,
        a.Done,
        "stop the broker, as SIGTERM does; or at once, as a kill",
        "nobody is served any more",
    ),
    Operation("ping", q.Nothing, a.Pong, "whether every shard answers", NO_TOPICS),
    Operation(
        "subscribers",
        q.Subscribers,
        a.Subscribers,
        "sessions that get the messages of a topic, with their filters",
        Tells((TopicField("subscribers.filter", "filter"),), TopicField("topic")),
        rows="subscribers",
    ),
    Operation(
        "waiting",
        q.OneClient,
        a.Waiting,
        "how many messages wait for a session, counted in the log",
        Tells((TopicField("topics.topic"),)),
    ),
)
OPERATIONS = {operation.name: operation for operation in TABLE}


class RequestRefused(RumqError):
    """The broker refuses a request, and says why."""


class NotFound(RequestRefused):
    """What a request names does not exist."""


def request_of(question: Raw) -> tuple[Operation, q.Request]:
    """Check a question of the socket; absent and null fields have their defaults. raises: ValueError"""
    operation = OPERATIONS[question["ask"]]
    given = {name: value for name, value in question.items() if value is not None}
    try:
        return operation, msgspec.convert(given, operation.request)
    except msgspec.ValidationError as fault:
        raise ValueError(explained(operation.request, given, str(fault))) from None


def explained(request: type[q.Request], given: Raw, problem: str) -> str:
    """What is wrong with a request; of a choice also what may be chosen."""
    name = problem.rpartition("`$.")[2].removesuffix("`")
    hint = get_type_hints(request).get(name)
    choices = [value for part in (hint, *get_args(hint)) if get_origin(part) is Literal for value in get_args(part)]
    if not choices or name not in given:
        return problem
    return f"cannot take {name} {given[name]!r}; one of {', '.join(choices)}"


def question_of(operation: Operation, request: q.Request, reader: AskingUser | None = None) -> Raw:
    """What is said to the socket of each shard. reader: None for who may be told of every topic"""
    question: Raw = {"ask": operation.name, **msgspec.to_builtins(request)}
    return question if reader is None else {**question, READER: msgspec.to_builtins(reader)}

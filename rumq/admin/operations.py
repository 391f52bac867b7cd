"""The table of the admin interface: every query and action, with its request, its answer and who may ask it.

The socket of a shard takes {"ask": name, ...the request's fields}. What is not in the table cannot be asked."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

import msgspec

from rumq.admin import answers as a
from rumq.admin import requests as q
from rumq.errors import RumqError

Role = Literal["read", "publish", "administer"]
Raw = dict[str, Any]


class Operation(NamedTuple):
    """A query, or an action that changes something. role: of those who may ask

    rows: the list of an answer that is a page, of which `key` orders it
    destroys: what an action cannot give back, for a question before it; empty: nothing"""

    name: str
    request: type[q.Request]
    answer: type[a.Answer]
    summary: str
    role: Role = "read"
    rows: str = ""
    destroys: str = ""

    @property
    def is_action(self) -> bool:
        return self.role == "administer"


def action(
    name: str, request: type[q.Request], answer: type[a.Answer], summary: str, destroys: str = ""
) -> Operation:
    return Operation(name, request, answer, summary, "administer", destroys=destroys)


TABLE = (
    Operation("status", q.Nothing, a.Status, "the whole broker in a few numbers"),
    Operation(
        "clients", q.Clients, a.Clients, "sessions and their clients, searched, sorted, paged", rows="clients"
    ),
    Operation(
        "topics", q.Topics, a.Topics, "topics with records and rate, searched, sorted, paged", rows="topics"
    ),
    Operation("ledger", q.Ledger, a.Ledger, "messages that were not delivered, by reason, client and topic"),
    action("disconnect", q.OneClient, a.Ended, "close a client's connection (0x98); its session stays"),
    action(
        "drop",
        q.OneClient,
        a.Ended,
        "close a client's connection and delete its session",
        "its subscriptions and what it has not received yet are lost",
    ),
    Operation("shards", q.Nothing, a.Shards, "processes: ready, memory, clients, turns"),
    Operation("listeners", q.Nothing, a.Listeners, "listeners with their clients"),
    Operation("partitions", q.Nothing, a.Partitions, "partitions with their place, size and health"),
    Operation("segments", q.Segments, a.Segments, "files of partitions, the newest first", rows="segments"),
    Operation("client", q.OneClient, a.ClientDetail, "one session: subscriptions, in flight, limits, losses"),
    Operation("tree", q.TopicTree, a.TopicTree, "one level of the topic tree", rows="levels"),
    Operation("groups", q.Groups, a.Groups, "shared groups with members and lag", rows="groups"),
    Operation("retained", q.Retained, a.Retained, "retained messages by filter, in the order of topics"),
    Operation("exports", q.Nothing, a.Exports, "how far each partition is exported to the lake"),
    Operation("bans", q.Nothing, a.Bans, "what is banned, and for how long"),
    Operation("traces", q.Nothing, a.Traces, "what is traced, and for how long"),
    Operation("events", q.Events, a.Events, "the newest events of the broker, or those after a cursor"),
    Operation("cluster", q.Nothing, a.Cluster, "nodes, copies of shards and the control plane of a cluster"),
    Operation("terms", q.Nothing, a.Terms, "copies of the shards of a cluster, as their leaders see them"),
    Operation("spans", q.Spans, a.Spans, "the newest spans of messages that are traced with OpenTelemetry"),
    Operation("metrics", q.Nothing, a.Metrics, "counters and histograms of every shard"),
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
    action(
        "trim", q.Trim, a.Done, "remove segments whose records are all below an lsn", "their records are lost"
    ),
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
    Operation("ping", q.Nothing, a.Pong, "whether every shard answers"),
    Operation(
        "subscribers",
        q.Subscribers,
        a.Subscribers,
        "sessions that get the messages of a topic, with their filters",
        rows="subscribers",
    ),
)
OPERATIONS = {operation.name: operation for operation in TABLE}


class RequestRefused(RumqError):
    """The broker refuses a request, and says why."""


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
    choices = [
        value for part in (hint, *get_args(hint)) if get_origin(part) is Literal for value in get_args(part)
    ]
    if not choices or name not in given:
        return problem
    return f"cannot take {name} {given[name]!r}; one of {', '.join(choices)}"


def question_of(operation: Operation, request: q.Request) -> Raw:
    """What is said to the socket of each shard."""
    return {"ask": operation.name, **msgspec.to_builtins(request)}

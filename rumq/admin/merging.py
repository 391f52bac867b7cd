"""One answer from those of all shards: rows joined and ordered anew, numbers added, what only one shard knows kept."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence

import msgspec

from rumq.admin import answers as a
from rumq.admin import requests as q
from rumq.admin.cluster_rows import MissingShard
from rumq.admin.event_cursor import events_joined
from rumq.admin.operations import UNKNOWN, NotFound, Operation, Raw, RequestRefused
from rumq.admin.rows import PartitionRow, StreamRow

NAMES = ("client_id", "topic", "level", "group")  # ordered from A on; numbers from the largest on
CLIENT_SORTS = {
    "client": "client_id", "lag": "behind_records", "published": "published", "delivered": "delivered",
    "in-flight": "in_flight", "since": "since_seconds", "rate": "rate", "messages": "messages", "bytes": "bytes",
    "lost": "undelivered",
}  # fmt: skip
TOPIC_SORTS = {"records": "records", "rate": "records_per_second", "topic": "topic"}
SUMS: dict[str, Callable[[Raw], float]] = {
    "messages": lambda row: row["published"] + row["delivered"],
    "bytes": lambda row: row["bytes_in"] + row["bytes_out"],
}


def first_rows(rows: Iterable[Raw], key: str, limit: int) -> list[Raw]:
    """Names from A on, numbers from the largest on."""
    if key in NAMES:
        return heapq.nsmallest(limit, rows, key=lambda row: row[key])
    if key in SUMS:
        return heapq.nlargest(limit, rows, key=SUMS[key])
    return heapq.nlargest(limit, rows, key=lambda row: row[key] or 0)


def order_of(operation: Operation, request: q.Request) -> str:
    """The field that a page is ordered by."""
    if isinstance(request, q.Clients):
        return CLIENT_SORTS[request.sort or "client"]
    if isinstance(request, q.Topics):
        return TOPIC_SORTS[request.sort or "records"]
    return {"tree": "level", "groups": "group", "segments": "base_lsn", "subscribers": "client_id"}[operation.name]


def merged(
    operation: Operation, request: q.Request, replies: list[Raw], missing: Sequence[MissingShard] = ()
) -> a.Answer:
    """missing: shards that have not answered

    raises: RequestRefused with what a shard said, NotFound where all know nothing of it; ValueError for an answer of
    another version"""
    for reply in replies:
        if "error" in reply:
            raise RequestRefused(str(reply["error"]))
    if replies and not missing and all(reply.get(UNKNOWN, False) for reply in replies):
        raise NotFound(nothing_of(request))
    if isinstance(request, q.Events):
        events = events_joined(request, replies)
        events.missing = list(missing)
        return events
    if operation.name == "tree":
        replies = [same_levels_added(replies)]
    if operation.name == "groups":
        replies = [same_groups_added(replies)]
    if operation.name in ("client", "waiting"):
        raw = next((reply for reply in replies if reply["found"]), replies[0])
    elif operation.name == "retained" and isinstance(request, q.Retained):
        raw = retained_page(request, replies)
    elif isinstance(request, q.Paged):
        raw = page(operation, request, replies)
    else:
        raw = added_up(replies)
    if operation.name == "listeners":
        raw["listeners"] = listeners_added(raw["listeners"])
    if operation.name in ("bans", "traces"):
        raw[operation.name] = once_each(raw[operation.name])
    if missing:
        raw["missing"] = msgspec.to_builtins(missing)
    return msgspec.convert(raw, operation.answer)


def nothing_of(request: q.Request) -> str:
    """What a request names, of which no shard has anything."""
    match request:
        case q.OneClient(client=client) | q.Reset(client=client):
            return f"there is no client {client!r}: it has ended, or never was"
        case q.Segments(stream=None, partition=partition):
            return f"no stream has a partition {partition}"
        case q.Segments(stream=stream, partition=None):
            return f"there is no stream {stream!r}; `streams` lists them"
        case q.Segments(stream=stream, partition=partition) | q.OnePartition(stream=stream, partition=partition):
            return f"there is no partition {partition} of a stream {stream!r}; `partitions` lists them"
    return "there is no such thing"


def page(operation: Operation, request: q.Paged, replies: list[Raw]) -> Raw:
    found = [row for reply in replies for row in reply[operation.rows]]
    total = len(found) + sum(reply["left_out"] for reply in replies)
    until = min(request.offset + request.limit, q.ROWS_MAX)
    kept = first_rows(found, order_of(operation, request), until)[request.offset :]
    return {operation.rows: kept, "left_out": total - len(kept)}


def retained_page(request: q.Retained, replies: list[Raw]) -> Raw:
    found = [row for reply in replies for row in reply["messages"]]
    kept = first_rows(found, "topic", request.limit)
    return {
        "messages": kept,
        "left_out": len(found) - len(kept) + sum(reply["left_out"] for reply in replies),
    }


def added_up(replies: list[Raw]) -> Raw:
    """Numbers are added, lists joined; of the rest the first is kept."""
    total: Raw = {}
    for reply in replies:
        for name, value in reply.items():
            known = total.get(name)
            if known is None or known == "":
                total[name] = value
            elif isinstance(value, list):
                total[name] = [*known, *value]
            elif isinstance(value, (int, float)) and not isinstance(value, bool):
                total[name] = known + value
    return total


def same_levels_added(replies: list[Raw]) -> Raw:
    """Topics of one level are in several shards."""
    levels: dict[str, Raw] = {}
    for reply in replies:
        for row in reply["levels"]:
            known = levels.setdefault(row["level"], {**row, "is_topic": False, "topics": 0, "records": 0})
            known["is_topic"] |= row["is_topic"]
            known["topics"] += row["topics"]
            known["records"] += row["records"]
    return {
        "levels": list(levels.values()),
        "left_out": max((reply["left_out"] for reply in replies), default=0),
    }


def same_groups_added(replies: list[Raw]) -> Raw:
    """Members of one group are in several shards; its place is in one."""
    groups: dict[str, Raw] = {}
    for reply in replies:
        for row in reply["groups"]:
            known = groups.get(row["group"])
            if known is None:
                groups[row["group"]] = {**row}
                continue
            for name in ("members", "behind_records", "returned_records"):
                known[name] += row[name]
            known["clients"] = sorted([*known["clients"], *row["clients"]])
    return {
        "groups": list(groups.values()),
        "left_out": max((reply["left_out"] for reply in replies), default=0),
    }


def listeners_added(rows: list[Raw]) -> list[Raw]:
    found: dict[int, Raw] = {}
    for row in rows:
        known = found.setdefault(row["listener"], {**row, "connected": 0})
        known["connected"] += row["connected"]
    return [found[number] for number in sorted(found)]


def once_each(rows: list[Raw]) -> list[Raw]:
    """Every shard has it: counts are added, of the seconds the longest counts."""
    found: dict[tuple[str, str], Raw] = {}
    for row in rows:
        known = found.get((row["kind"], row["name"]))
        if known is None:
            found[row["kind"], row["name"]] = {**row}
            continue
        for name in ("refused", "reported", "left_out"):
            if name in row:
                known[name] += row[name]
        known["seconds"] = max(known["seconds"], row["seconds"])
    return list(found.values())


def streams_of(partitions: list[PartitionRow]) -> a.Streams:
    """The streams of partitions, in their order."""
    found: dict[str, StreamRow] = {}
    for each in partitions:
        row = found.setdefault(
            each.stream,
            StreamRow(
                stream=each.stream, durability=each.durability, partitions=0, records=0, bytes=0, pending_bytes=0,
                topics=0, segments=0, offline=0,
            ),
        )  # fmt: skip
        row.partitions += 1
        row.records += each.next_lsn - each.first_lsn
        row.bytes += each.bytes
        row.pending_bytes += each.pending_bytes
        row.topics += each.topics
        row.segments += each.segments
        row.offline += each.offline is not None
    return a.Streams(streams=list(found.values()))

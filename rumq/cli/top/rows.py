"""The table of a view: its columns, and a text for each cell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec
from rich.table import Table
from rich.text import Text

from rumq.admin import answers as a
from rumq.cli.top.state import TopState
from rumq.terminal.units import age, count, printable, rate, shown, size

Cell = Callable[[Any], str]


class Column(NamedTuple):
    """width: 0: what is left, for a name; sort: the order that it shows"""

    head: str
    cell: Cell
    width: int = 0
    sort: str = ""


def joined(row: Any) -> str:
    return " ".join(f"{name}={shown(value, '')}" for name, value in row.fields.items())


def sized_rate(number: float) -> str:
    return f"{size(number)}/s" if number else "0"


COLUMNS: dict[str, tuple[Column, ...]] = {
    "clients": (
        Column("client", lambda row: printable(row.client_id), 0, "client"),
        Column("", lambda row: "" if row.connected else "away", 4),
        Column("msg/s", lambda row: rate(row.rate), 9, "rate"),
        Column("behind", lambda row: count(row.behind_records), 9, "lag"),
        Column("age", lambda row: "-" if row.behind_seconds is None else age(row.behind_seconds), 7),
        Column("bytes/s", lambda row: sized_rate(row.bytes_in_per_second + row.bytes_out_per_second), 12, "bytes"),
        Column("flight", lambda row: count(row.in_flight), 6, "in-flight"),
        Column("lost", lambda row: count(row.undelivered), 6, "lost"),
    ),
    "topics": (
        Column("topic", lambda row: printable(row.topic), 0, "topic"),
        Column("stream", lambda row: f"{row.stream}/{row.partition}", 12),
        Column("records", lambda row: count(row.records), 13, "records"),
        Column("rate", lambda row: rate(row.records_per_second), 11, "rate"),
    ),
    "shards": (
        Column("shard", lambda row: str(row.shard)),
        Column("pid", lambda row: str(row.pid), 7),
        Column("state", lambda row: shard_state(row), 9),
        Column("clients", lambda row: count(row.connected), 8),
        Column("sessions", lambda row: count(row.sessions), 8),
        Column("topics", lambda row: count(row.topics), 9),
        Column("memory", lambda row: size(row.memory_bytes), 9),
        Column("log", lambda row: size(row.log_bytes), 9),
    ),
    "partitions": (
        Column("partition", lambda row: f"{row.stream}/{row.partition}"),
        Column("shard", lambda row: str(row.shard), 5),
        Column("durable", lambda row: row.durability, 7),
        Column("records", lambda row: count(row.next_lsn - row.first_lsn), 13),
        Column("size", lambda row: size(row.bytes), 9),
        Column("pending", lambda row: size(row.pending_bytes), 9),
        Column("segments", lambda row: count(row.segments), 8),
        Column("topics", lambda row: count(row.topics), 9),
    ),
    "groups": (
        Column("group", lambda row: printable(row.group)),
        Column("members", lambda row: count(row.members), 7),
        Column("behind", lambda row: count(row.behind_records), 11),
        Column("returned", lambda row: count(row.returned_records), 9),
    ),
    "events": (
        Column("time", lambda row: shown(row.time_us, "µs since 1970")[11:23], 12),
        Column("level", lambda row: row.level, 7),
        Column("event", lambda row: printable(row.event), 22),
        Column("", lambda row: "" if row.shard is None else str(row.shard), 2),
        Column("fields", joined),
    ),
}
LEFT = {
    "client",
    "topic",
    "group",
    "partition",
    "event",
    "fields",
    "level",
    "time",
    "stream",
    "durable",
    "state",
    "",
}
STYLES = {"error": "bold red", "warning": "yellow"}


def shard_state(row: Any) -> str:
    if not row.ready:
        return "starting"
    return "draining" if row.draining else "ready" if row.accepting else "refusing"


def rows_of(answer: msgspec.Struct | None, state: TopState) -> list[Any]:
    """Rows of the view; the newest event first. A filter of partitions is ours: they are few."""
    if answer is None:
        return []
    rows = getattr(answer, state.shown.name, None)
    if not isinstance(rows, list):
        return []
    if isinstance(answer, a.Events):
        return rows[::-1]
    if isinstance(answer, a.Partitions):
        return [row for row in rows if state.filter in row.stream]
    return rows


def name_of(row: Any) -> str:
    found = getattr(row, "client_id", None)
    return found if isinstance(found, str) else ""


def table_of(rows: Sequence[Any], state: TopState, width: int) -> Table:
    """A heading and a line for each row. Columns that do not fit are left out, from the right."""
    columns = fitting(COLUMNS[state.shown.name], width, state.sort)
    table = Table(box=None, expand=True, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for column in columns:
        head = Text(column.head + ("*" if column.sort and column.sort == state.sort else ""))
        table.add_column(
            head, justify="left" if column.head in LEFT else "right", no_wrap=True, overflow="ellipsis",
            width=column.width or None, ratio=None if column.width else 1,
        )  # fmt: skip
    for number, row in enumerate(rows):
        style = STYLES.get(getattr(row, "level", ""), "")
        if number == state.selected and state.shown.name == "clients":
            style = "reverse"
        table.add_row(*(Text(column.cell(row), no_wrap=True, overflow="ellipsis") for column in columns), style=style)
    return table


def fitting(columns: Sequence[Column], width: int, sort: str, name_width: int = 16) -> list[Column]:
    kept = list(columns)
    while len(kept) > 1 and sum((each.width or name_width) + 1 for each in kept) > width + 1:
        kept.remove(next(each for each in reversed(kept) if each.width and (not sort or each.sort != sort)))
    return kept

"""An answer as text: aligned tables of its rows, `name  value` lines for the rest, with units."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import msgspec
from msgspec import inspect

from rumq.admin import rows as r
from rumq.cli.ask.request_flags import describe_type
from rumq.terminal.units import shown

# Of wide rows those columns that an operator looks for, the most wanted first; the others are in --json.
COLUMNS: dict[type, tuple[str, ...]] = {
    r.ClientRow: (
        "client_id", "connected", "rate", "behind_records", "behind_seconds", "in_flight", "undelivered", "published",
        "delivered", "bytes_in", "bytes_out", "since_seconds", "user", "address", "protocol", "subscriptions",
    ),
    r.EventRow: ("time_us", "level", "event", "source", "shard", "fields"),
    r.PartitionRow: (
        "stream", "partition", "shard", "durability", "first_lsn", "next_lsn", "committed_lsn", "topics", "segments",
        "bytes", "pending_bytes", "last_time_us", "offline",
    ),
}  # fmt: skip
SUFFIXES = {"_per_second": "/s", "_seconds": "", "_bytes": "", "_us": ""}


@cache
def units(struct: type) -> dict[str, str]:
    """Unit of each field."""
    kind = inspect.type_info(struct)
    assert isinstance(kind, inspect.StructType)
    return {field.name: describe_type(field.type)[1].get("x-unit", "") for field in kind.fields}


@cache
def is_number(struct: type, name: str) -> bool:
    kind = inspect.type_info(struct)
    assert isinstance(kind, inspect.StructType)
    plain = next(describe_type(field.type)[0] for field in kind.fields if field.name == name)
    return isinstance(plain, inspect.IntType | inspect.FloatType)


def heading(name: str) -> str:
    for suffix, instead in SUFFIXES.items():
        if name.endswith(suffix) and name not in ("bytes_in_per_second", "bytes_out_per_second"):
            return name.removesuffix(suffix) + instead
    return name.removesuffix("_per_second") + ("/s" if name.endswith("_per_second") else "")


def text_of(answer: msgspec.Struct, *, is_wide: bool = False) -> Iterator[str]:
    """The lines of an answer. is_wide: with all columns"""
    plain: list[tuple[str, str]] = []
    listed: list[tuple[str, Sequence[Any]]] = []
    gather(answer, "", plain, listed)
    listed = [each for each in listed if each[0] != "missing"]
    left_out = getattr(answer, "left_out", 0)
    only_rows = [name for name, _ in plain if name != "left_out"] == []
    if not only_rows:
        width = max(len(name) for name, _ in plain)
        for name, value in plain:
            yield f"{name:<{width}}  {value}"
    for number, (name, rows) in enumerate(listed):
        if number or not only_rows:
            yield ""
        if not rows:
            yield f"{name}: none"
        else:
            if not only_rows or len(listed) > 1:
                yield f"{name}:"
            yield from table(rows, is_wide=is_wide)
    if left_out and only_rows:
        yield f"and {left_out:,} more: --limit, --offset"
    for shard in getattr(answer, "missing", ()):
        yield f"without shard {shard.shard}, which does not answer: {shard.why}"


def gather(
    struct: msgspec.Struct, prefix: str, plain: list[tuple[str, str]], listed: list[tuple[str, Sequence[Any]]]
) -> None:
    for name, unit in units(type(struct)).items():
        value = getattr(struct, name)
        if isinstance(value, msgspec.Struct):
            gather(value, "" if name == "client" else f"{name} ", plain, listed)
        elif isinstance(value, list) and (not value or isinstance(value[0], msgspec.Struct)):
            listed.append((prefix + name, value))
        elif isinstance(value, dict):
            plain += [(f"{prefix}{name} {key}", shown(each, "")) for key, each in value.items()]
        else:
            plain.append((prefix + heading(name), shown(value, unit)))


def table(rows: Sequence[msgspec.Struct], *, is_wide: bool = False) -> Iterator[str]:
    """Rows of one kind: a heading, then a line each. Numbers are at the right."""
    kind = type(rows[0])
    by_name = units(kind)
    names = [*COLUMNS.get(kind, by_name)] if not is_wide else [*by_name]
    cells = [[shown(value_of(row, name), by_name[name]) for name in names] for row in rows]
    yield from aligned([heading(name) for name in names], cells, [is_number(kind, name) for name in names])


def value_of(row: msgspec.Struct, name: str) -> Any:
    value = getattr(row, name)
    if isinstance(value, msgspec.Struct | dict) or (
        isinstance(value, list) and value and isinstance(value[0], msgspec.Struct | tuple | list)
    ):
        return msgspec.json.encode(value).decode()
    return value


def aligned(head: Sequence[str], cells: Sequence[Sequence[str]], right: Sequence[bool]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(head, *cells, strict=True)]
    for line in (head, *cells):
        padded = (
            cell.rjust(width) if at_right else cell.ljust(width)
            for cell, width, at_right in zip(line, widths, right, strict=True)
        )
        yield "  ".join(padded).rstrip()

"""The options of format "rumq", checked: an option that is not known is an error, not ignored. docs/spark.md.

Knows no Spark and no file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

ALLOWED = (
    "path", "subscribe", "stream", "startingOffsets", "endingOffsets", "startingTimestamp", "endingTimestamp",
    "failOnDataLoss", "maxRecordsPerPartition",
)  # fmt: skip


class BadOption(ValueError):
    """The reader's fault. option, value, and what is allowed."""

    def __init__(self, option: str, value: str, allowed: str) -> None:
        super().__init__(option, value, allowed)
        self.option, self.value, self.allowed = option, value, allowed

    def __str__(self) -> str:
        return f'rumq: option {self.option} = "{self.value}": expected {self.allowed}'


@dataclass(frozen=True)
class Options:
    """starts, ends: "earliest", "latest", or partition name -> lsn; times in µs since 1970, None for none."""

    path: str
    filters: tuple[str, ...] = ()
    stream: str | None = None
    starts: str | dict[str, int] = "earliest"
    ends: str | dict[str, int] = "latest"
    start_us: int | None = None
    end_us: int | None = None
    fail_on_data_loss: bool = True
    records_max: int = 2_000_000


def parse(given: Mapping[str, str]) -> Options:
    """raises: BadOption"""
    known = {name.lower(): name for name in ALLOWED}
    for name in given:
        if name.lower() not in known:
            raise BadOption(name, given[name], f"one of the options {', '.join(ALLOWED)}")
    said = {name.lower(): value for name, value in given.items()}
    path = said.get("path", "")
    if not path:
        raise BadOption("path", "", 'a data directory, as in .load("rumq-data")')
    return Options(
        path,
        tuple(f.strip() for f in said.get("subscribe", "").split(",") if f.strip()),
        said.get("stream"),
        offsets("startingOffsets", said.get("startingoffsets", "earliest")),
        offsets("endingOffsets", said.get("endingoffsets", "latest")),
        moment("startingTimestamp", said.get("startingtimestamp")),
        moment("endingTimestamp", said.get("endingtimestamp")),
        truth("failOnDataLoss", said.get("failondataloss", "true")),
        positive("maxRecordsPerPartition", said.get("maxrecordsperpartition", "2000000")),
    )


def offsets(name: str, value: str) -> str | dict[str, int]:
    if value in ("earliest", "latest"):
        return value
    allowed = 'earliest, latest, or JSON such as {"main/g1/p0": 1000}'
    try:
        parsed = json.loads(value)
        if not isinstance(parsed, dict):
            raise ValueError
        return {str(partition): int(lsn) for partition, lsn in parsed.items()}
    except (ValueError, TypeError):
        raise BadOption(name, value, allowed) from None


def moment(name: str, value: str | None) -> int | None:
    if value is None:
        return None
    if value.isascii() and value.isdigit():
        return int(value) * 1000  # milliseconds, as the Kafka source has it
    try:
        parsed = datetime.fromisoformat(value)
    except ValueError:
        raise BadOption(
            name, value, "milliseconds since 1970, or a time such as 2026-11-20T06:00:00Z"
        ) from None
    if parsed.tzinfo is None:
        parsed = parsed.replace(tzinfo=UTC)
    return round(parsed.timestamp() * 1_000_000)


def truth(name: str, value: str) -> bool:
    if value.lower() not in ("true", "false"):
        raise BadOption(name, value, "true or false")
    return value.lower() == "true"


def positive(name: str, value: str) -> int:
    if not (value.isascii() and value.isdigit() and int(value)):
        raise BadOption(name, value, "a whole number, 1 or more")
    return int(value)

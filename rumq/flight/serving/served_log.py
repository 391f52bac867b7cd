"""Reads a data directory for the Flight server, within the permissions of a caller.

All calls of this process share the views of partitions, which scan new data only."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from rumq.flight.errors import BadRequest, NotAllowed
from rumq.flight.schema import makers_of, schema_of
from rumq.flight.serving.call_authorization import FlightCaller
from rumq.flight.tickets import PARTITION, EndWithin, FindTime, ReadCommand, SegmentsBelow, Ticket, parse_command
from rumq.table.lake_fallback import LakeFallback
from rumq.table.options import TableOptions
from rumq.table.partition_ranges import PartitionRange, log_reader, partition_ranges
from rumq.table.plan import cut, spans
from rumq.table.scan import Selection, scan_with_positions, topic_matcher
from rumq.table.topic_ranges import topic_ranges


class ServedLog:
    """A data directory, which a broker may be writing to, and its lake."""

    def __init__(self, path: str) -> None:
        self.path = path

    def heads(self) -> dict[str, dict[str, int]]:
        """Of each partition: first lsn, committed (end of the readable records), its generation, and last_ts, the time
        of the newest record, µs since 1970. They include records that the caller may not read."""
        return {partition.name: head(partition) for partition in partition_ranges(TableOptions(self.path))}

    def find_time(self, asked: FindTime) -> int:
        """The first lsn at or after a time; the end if there is none. raises: BadRequest"""
        partition = self._partition_range("action", asked.partition)
        return partition.find_time(asked.ts_us, behind_lost=asked.behind_lost)

    def end_within(self, asked: EndWithin) -> int:
        """The end of so many bytes of the log: `PartitionView.end_within`. raises: BadRequest"""
        partition = self._partition_range("action", asked.partition)
        return partition.end_within(asked.start, asked.end, asked.bytes_max)

    def segments(self, asked: SegmentsBelow) -> dict[str, str]:
        """By partition, the file that has the last record below an lsn; "" if none has it."""
        names = [name for name in asked.below if PARTITION.fullmatch(name) is not None]
        found = partition_ranges(TableOptions(self.path), names)
        return {partition.name: partition.segment_of(asked.below[partition.name] - 1) for partition in found}

    def tickets(self, command: ReadCommand) -> list[Ticket]:
        """One ticket per range. raises: BadOption, DataLoss"""
        options = command.options
        planned = spans(options, partition_ranges(options))
        found = cut(planned, options.partitions_min, options.records_max, cores=1)
        return [command.ticket(*span) for span in found]

    def command(self, data: bytes, now_us: int) -> ReadCommand:
        """raises: BadRequest, BadOption, UnknownOption"""
        return parse_command(data, self.path, now_us)

    def batches(self, ticket: Ticket, caller: FlightCaller) -> Iterator[tuple[pa.RecordBatch, int]]:
        """The rows of a ticket that the caller may read, each batch with the lsn to resume from.

        raises: BadRequest, NotAllowed at once; DataLoss, OSError while they are read
        """
        check_permission(ticket, caller)
        partition = self._partition_range("ticket", ticket.partition)
        schema = schema_of(ticket.columns, ticket.properties)
        columns, wanted = makers_of(ticket.columns, ticket.properties), wants(ticket, caller)
        fallback = None
        if partition.location:
            fallback = LakeFallback(
                partition.location,
                partition.name,
                columns,
                schema,
                wanted,
                topic_ranges(ticket.topics),
            )
        return scan_with_positions(
            partition.view, ticket.start, ticket.end, Selection(columns, schema, wanted),
            fail_on_data_loss=ticket.failOnDataLoss, fallback=fallback,
        )  # fmt: skip

    def _partition_range(self, what: str, name: str) -> PartitionRange:
        found = None
        if PARTITION.fullmatch(name) is not None:
            found = next(iter(partition_ranges(TableOptions(self.path), [name])), None)
        if found is None:
            there = ", ".join(log_reader(self.path).names()) or "none yet"
            raise BadRequest(what, f"there is no partition {name!r}; there are {there}")
        return found


def head(partition: PartitionRange) -> dict[str, int]:
    return {
        "first": partition.first_lsn, "committed": partition.end_lsn,
        "generation": int(partition.name.split("/")[1].removeprefix("g")), "last_ts": partition.last_ts,
    }  # fmt: skip


def check_permission(ticket: Ticket | ReadCommand, caller: FlightCaller) -> None:
    """Refuse a caller without permission for any row, as for subscriptions. raises: NotAllowed"""
    if not any(caller.may_read_any(topic_filter) for topic_filter in ticket.topics or ("#",)):
        asked = ", ".join(ticket.topics) or "any topic"
        raise NotAllowed(f"the rules do not allow user {caller.user!r} to replay {asked}", known=True)


def wants(ticket: Ticket, caller: FlightCaller) -> Callable[[str], bool] | None:
    """Called once per topic of a range."""
    wanted = topic_matcher(ticket.topics, None)
    if caller.permit is None:
        return wanted
    if wanted is None:
        return caller.may_read
    return lambda topic: wanted(topic) and caller.may_read(topic)

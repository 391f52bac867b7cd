"""The current partitions of a log, in a data directory or on a Flight server."""

from __future__ import annotations

from rumq.records.flight_log import remote_partitions
from rumq.table.options import TableOptions
from rumq.table.partition_ranges import ReadablePartition, chosen, partition_ranges


def readable_partitions(options: TableOptions) -> list[ReadablePartition]:
    """In order. raises: BadOption; for a server as `LogClient.heads`"""
    if options.flight_location is None:
        return list(partition_ranges(options))
    found = remote_partitions(options.flight_location)
    return [found[name] for name in chosen(options, {name: name.partition("/")[0] for name in found})]

"""The partitions of a log to read, as they are now: of a data directory, or of a Flight server."""

from __future__ import annotations

from rumq.spark.source.flight_log import remote_views
from rumq.table.options import Options
from rumq.table.partition_ranges import View, chosen, extents


def readable_partitions(options: Options) -> list[View]:
    """In order. raises: BadOption; of a server as `LogClient.heads`"""
    if options.where is None:
        return list(extents(options))
    found = remote_views(options.where)
    return [found[name] for name in chosen(options, {name: name.partition("/")[0] for name in found})]

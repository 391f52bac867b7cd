"""The identity of a checkpoint's log: the segment of the last record that the query has processed.

docs/guides/spark.md, "Stream".

Segment names are random; a copy of the log keeps them, another log has others. For a record that retention removed the
segment is unknown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rumq.table.errors import OtherLog
from rumq.table.options import TableOptions
from rumq.table.partition_ranges import ReadablePartition

Lsns = Mapping[str, int]
Segments = dict[str, str]


def segments_at(options: TableOptions, found: Sequence[ReadablePartition], lsns: Lsns) -> Segments:
    """Partition -> the segment of the last record below its lsn, if known.

    cost: one request if a broker serves the log"""
    asked = {view.name: lsns[view.name] for view in found if lsns.get(view.name, 0) > 0}
    if options.flight_location is not None:
        from rumq.records.flight_log import flight_client

        names = flight_client(options.flight_location).segments(asked) if asked else {}
    else:
        names = {view.name: view.segment_of(asked[view.name] - 1) for view in found if view.name in asked}
    return {name: segment for name, segment in names.items() if segment}


def check_same_log(
    options: TableOptions, found: Sequence[ReadablePartition], lsns: Lsns, said: Mapping[str, str]
) -> None:
    """said: an earlier result of `segments_at` for these lsns. raises: OtherLog"""
    asked = {name: lsn for name, lsn in lsns.items() if name in said}
    for name, segment in segments_at(options, found, asked).items():
        if segment != said[name]:
            raise OtherLog(name, asked[name] - 1, said[name], segment)

"""Which log a checkpoint belongs to: it names the segment of the last record that the query has done. docs/spark.md,
"Stream".

A segment's name is random, and a copy of the log keeps it; another log has other names. Of a record that retention
removed the segment is unknown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rumq.table.errors import OtherLog
from rumq.table.options import Options
from rumq.table.partition_ranges import ReadablePartition

Lsns = Mapping[str, int]
Segments = dict[str, str]


def segments_at(options: Options, found: Sequence[ReadablePartition], lsns: Lsns) -> Segments:
    """Partition -> the segment of the last record below its lsn, of those where that is known.

    cost: of a broker one question"""
    asked = {view.name: lsns[view.name] for view in found if lsns.get(view.name, 0) > 0}
    if options.flight_location is not None:
        from rumq.spark.source.flight_log import flight_client

        names = flight_client(options.flight_location).segments(asked) if asked else {}
    else:
        names = {view.name: view.segment_of(asked[view.name] - 1) for view in found if view.name in asked}
    return {name: segment for name, segment in names.items() if segment}


def check_same_log(
    options: Options, found: Sequence[ReadablePartition], lsns: Lsns, said: Mapping[str, str]
) -> None:
    """said: as `segments_at` told once of these lsns. raises: OtherLog"""
    asked = {name: lsn for name, lsn in lsns.items() if name in said}
    for name, segment in segments_at(options, found, asked).items():
        if segment != said[name]:
            raise OtherLog(name, asked[name] - 1, said[name], segment)

"""A range of one partition as Arrow batches, from its files and its lake, or from a Flight server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rumq.table.errors import BadOption
from rumq.table.lake_fallback import LakeFallback
from rumq.table.options import TableOptions
from rumq.table.partition_ranges import maybe_view
from rumq.table.plan import NO_FILTERS, LsnSpan
from rumq.table.pushed_filters import PushedFilters
from rumq.table.scan import Selection, scan, topic_matcher
from rumq.table.topic_ranges import topic_ranges

if TYPE_CHECKING:
    import pyarrow as pa


def range_batches(
    options: TableOptions, span: LsnSpan, lake: str, columns: dict[str, str], schema: pa.Schema,
    pushed_filters: PushedFilters = NO_FILTERS,
) -> Iterator[pa.RecordBatch]:  # fmt: skip
    """The wanted records of a range in order, in batches limited by rows and bytes.

    lake: location of the partition's lake or ""; columns: name in the schema -> name in `columns.MAKERS`
    raises: BadOption, DataLoss; of files OSError and LakeError, of a server as `LogClient.batches`"""
    name, start, end = span
    if options.flight_location is not None:
        from rumq.records.flight_log import remote_batches

        yield from remote_batches(options, name, start, end, schema, pushed_filters)
        return
    wants, fallback = pushed_filters.wants(topic_matcher(options.filters, options.pattern)), None
    if lake:
        ranges = pushed_filters.ranges(topic_ranges(options.filters))
        fallback = LakeFallback(lake, name, columns, schema, wants, ranges, pushed_filters.times)
    view = maybe_view(options.path, name)
    if view is None and fallback is None:
        raise BadOption("path", options.path, f"one that every reader can open: {name} is not there")
    yield from scan(
        view, start, end, Selection(columns, schema, wants, pushed_filters.times),
        fail_on_data_loss=options.fail_on_data_loss, fallback=fallback,
    )  # fmt: skip

"""Whether a query reads the whole log though its author may not think so. docs/guides/spark.md, "Read"."""

from __future__ import annotations

from collections.abc import Sequence

from rumq.table.plan import NO_FILTERS, LsnSpan
from rumq.table.pushed_filters import PushedFilters

RECORDS_MIN = 1_000_000  # fewer are read in about a second


def full_read_notice(spans: Sequence[LsnSpan], pushed: PushedFilters, subscribe: Sequence[str]) -> str:
    """What to tell the author of a query; empty if something narrows it, or there is little to read.

    subscribe: the filters of the option. Spark gives no OR to a Python source, so this may be one."""
    records = sum(span.end - span.start for span in spans)
    if records < RECORDS_MIN or pushed != NO_FILTERS or tuple(subscribe) not in ((), ("#",)):
        return ""
    return (
        f"rumq: this query reads all {records:,} records of {len({span.partition for span in spans})} partitions: no "
        "condition on topic, partition, lsn or ts has reached the log. Spark hands over no OR: write "
        "`topic in ('a', 'b')` or two bounds joined by AND, or set the option subscribe"
    )

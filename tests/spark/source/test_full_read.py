"""Who reads a large log without a condition is told so."""

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed (pip install 'rumq[spark]')")

from rumq.spark.source.full_read import RECORDS_MIN, full_read_notice
from rumq.table.plan import NO_FILTERS, LsnSpan
from rumq.table.pushed_filters import Condition, PushedFilters

ALL = [LsnSpan("main/g1/p0", 5, 5 + RECORDS_MIN // 2), LsnSpan("main/g1/p1", 0, RECORDS_MIN - RECORDS_MIN // 2)]
TOPIC = PushedFilters(topics=(Condition("EqualTo", "a", False),))


@pytest.mark.parametrize("subscribe", [(), ("#",)])
def test_a_full_read_of_a_large_log_is_told_with_the_way_out(subscribe: tuple[str, ...]) -> None:
    said = full_read_notice(ALL, NO_FILTERS, subscribe)
    assert "all 1,000,000 records of 2 partitions" in said and "topic in ('a', 'b')" in said


@pytest.mark.parametrize(
    ("spans", "pushed", "subscribe"),
    [
        (ALL, TOPIC, ()),
        (ALL, PushedFilters(first_lsn=1), ()),
        (ALL, NO_FILTERS, ("a/#",)),
        (ALL[:1], NO_FILTERS, ()),
    ],
)
def test_a_query_that_something_narrows_says_nothing(
    spans: list[LsnSpan], pushed: PushedFilters, subscribe: tuple[str, ...]
) -> None:
    assert full_read_notice(spans, pushed, subscribe) == ""

"""Rates and percentiles from counters that only grow, of shards that may be started again."""

import pytest

from rumq.admin.answers import Metrics
from rumq.cli.top.samples import BARS, Samples, sparkline
from rumq.session.state.histogram import BOUNDS
from tests.cli.top.world import figures


def test_a_rate_is_of_all_shards_between_two_samples() -> None:
    samples = Samples()
    samples.add(Metrics(shards=[figures(0, published=100), figures(1, published=50)]), 10.0)
    assert samples.rate("messages_published") is None
    samples.add(Metrics(shards=[figures(0, published=300), figures(1, published=150)]), 12.0)
    assert samples.rate("messages_published") == 150.0
    samples.add(Metrics(shards=[figures(0, published=300), figures(1, published=160)]), 13.0)
    assert samples.rates("messages_published", 5) == [150.0, 10.0]


def test_a_shard_that_was_started_again_counts_from_nothing() -> None:
    samples = Samples()
    samples.add(Metrics(shards=[figures(0, 1, published=1000)]), 0.0)
    samples.add(Metrics(shards=[figures(0, 2, published=30)]), 1.0)
    assert samples.rate("messages_published") == 30.0


def test_an_answer_with_the_count_of_the_one_before_is_no_sample() -> None:
    """The broker counts sessions at most once a second; a key may ask sooner."""
    samples = Samples()
    samples.add(Metrics(shards=[figures(published=0)]), 0.0)
    samples.add(Metrics(shards=[figures(published=100)]), 1.0)
    again = figures(published=100)
    again.counted_seconds_ago = 0.6
    samples.add(Metrics(shards=[again]), 1.6)
    assert samples.rates("messages_published", 9) == [100.0]


def test_percentiles_are_of_the_last_ten_seconds() -> None:
    samples = Samples()
    assert samples.percentile("publish_ack", 0.5) is None
    samples.add(Metrics(shards=[figures(b9=1_000_000)]), 0.0)
    samples.add(Metrics(shards=[figures(b9=1_000_000)]), 5.0)
    assert samples.percentile("publish_ack", 0.5) is None, "nothing came since"
    samples.add(Metrics(shards=[figures(b9=1_000_001, b2=99)]), 12.0)
    assert samples.percentile("publish_ack", 0.5) == BOUNDS[2]
    assert samples.percentile("publish_ack", 0.99) == BOUNDS[2]
    assert samples.percentile("publish_ack", 1.0) == BOUNDS[9]
    assert samples.percentile("no_such", 0.5) is None


def test_gauges_are_added_or_the_largest_is_taken() -> None:
    samples = Samples()
    assert (samples.gauge("connected"), samples.largest("connected"), samples.undelivered()) == (0, 0, 0)
    samples.add(Metrics(shards=[figures(0), figures(1, ready=0)]), 0.0)
    assert samples.gauge("connected") == 4 and samples.largest("lag_records_max") == 2468
    assert samples.smallest("ready") == 0 and samples.undelivered() == 10


@pytest.mark.parametrize(
    ("values", "line"),
    [([], "    "), ([0.0, 0.0], "  ▁▁"), ([0, 1, 2, 4], "▁▃▅█"), ([9, 9, 0, 1, 2, 4], "▁▃▅█")],
)
def test_a_sparkline_is_as_wide_as_asked_and_as_high_as_its_largest(values: list[float], line: str) -> None:
    assert sparkline(values, 4, BARS) == line

"""Metrics: docs/reference/metrics.md agrees with the table, and a scrape has every metric of it."""

from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from rumq.admin.figures import HistogramFigures, KafkaFigures, LaggingClient, ServiceFigures, ShardFigures
from rumq.gateway.metrics import metric_table as t
from rumq.gateway.metrics.exposition import exposition, of_client
from rumq.gateway.metrics.metric_docs import page
from rumq.session.state.histogram import BOUNDS, Histogram
from tests.faults.shard import Client, Shard
from tests.shards.admin.conftest import shard
from tests.shards.admin.world import ask

BUCKETS = len(BOUNDS) + 1  # the last one has no bound
ROOT = Path(__file__).parents[3]
__all__ = ["shard"]


def figures(index: int = 0) -> ShardFigures:
    """Of a shard with one of everything that has a label."""
    return ShardFigures(
        shard=index, incarnation=1, counters={m.key: 7 for m in t.COUNTERS}, gauges={m.key: 3 for m in t.GAUGES},
        listeners={"localhost:1883": 2}, listener_received={}, listener_sent={},
        undelivered={"expired": 5}, partitions=[],
        histograms={m.key: HistogramFigures(counts=[1] * BUCKETS, seconds=0.5) for m in t.HISTOGRAMS},
        lagging=[LaggingClient(client_id='a"\n', records=9)], exports={"main/0": 4},
    )  # fmt: skip


def test_the_page_is_made_from_the_table() -> None:
    """After a change of the table: python -m rumq.gateway.metrics.metric_docs > docs/reference/metrics.md"""
    assert (ROOT / "docs/reference/metrics.md").read_text() == page()


def test_a_scrape_has_every_metric_of_the_table_and_no_other(shard: Shard) -> None:
    found = ask(shard, "metrics").shards
    Client(shard, "c", 5)
    row = ask(shard, "client", client="c").client
    services = ServiceFigures(
        calls=[], seconds={}, open={}, published=1, records=2, refused_logins=3, refused_calls=4
    )  # fmt: skip
    kafka = KafkaFigures(
        connections=1,
        records=2,
        bytes=3,
        fetches=4,
        refused_logins=5,
        refused_connections=6,
        lost_records=7,
        groups=8,
        group_members=9,
        commits=10,
    )
    requests = {("GET", "/healthz", "2xx"): Histogram()}
    text = exposition(found, {}, requests, services=services, kafka=kafka).decode() + of_client(row).decode()
    assert 'rumq_client_received_bytes_total{client_id="c"}' in text
    families = {family.name for family in text_string_to_metric_families(text)}
    assert families == {metric.name.removesuffix("_total") for metric in t.TABLE}


def test_two_shards_are_two_series_and_a_client_id_is_quoted() -> None:
    text = exposition([figures(0), figures(1)], {"rumq_up": 1.0}, {}).decode()
    families = {family.name: family for family in text_string_to_metric_families(text)}
    lag = families["rumq_client_lag_records"].samples
    assert [(each.labels["shard"], each.labels["client_id"], each.value) for each in lag] == [
        ("0", 'a"\n', 9.0), ("1", 'a"\n', 9.0),
    ]  # fmt: skip
    assert families["rumq_up"].samples[0].value == 1.0


def test_buckets_of_a_histogram_add_up() -> None:
    text = exposition([figures()], {}, {}).decode()
    (turn,) = [family for family in text_string_to_metric_families(text) if family.name == "rumq_turn_seconds"]
    buckets = [each.value for each in turn.samples if each.name.endswith("_bucket")]
    assert buckets == [float(n) for n in range(1, BUCKETS + 1)]


def test_a_duration_falls_into_the_bucket_below_whose_bound_it_is() -> None:
    histogram = Histogram()
    for number, bound in enumerate(BOUNDS):
        histogram.observe(bound * 0.99)
        assert histogram.counts[number] == 1
    histogram.observe(1e6, 3)
    histogram.observe(-1.0)
    assert histogram.counts[-1] == 3 and histogram.counts[0] == 2

"""Figures of the shards as metrics of Prometheus, by `metric_table`. Labels are bounded: per client the top 20 only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST as CONTENT_TYPE
from prometheus_client.exposition import generate_latest

from rumq.admin.answers import Cluster
from rumq.admin.figures import HistogramFigures, KafkaFigures, ServiceFigures, ShardFigures
from rumq.admin.rows import ClientRow
from rumq.gateway.metrics import metric_table as t
from rumq.gateway.metrics.bridge_metrics import bridge_families
from rumq.gateway.metrics.certificate_expiry import CertificateState
from rumq.gateway.metrics.cluster_metrics import cluster_families
from rumq.gateway.metrics.function_metrics import Figures, function_families
from rumq.session.state.histogram import BOUNDS, Histogram

__all__ = ["CONTENT_TYPE", "FileFigures", "exposition", "of_client"]


Labels = tuple[str, str, str]  # method, route, class of status: as many as there are routes


class Families:
    """A registry of one scrape: `generate_latest` asks it once."""

    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = list(families)

    def collect(self) -> list[Metric]:
        return self._families


def of_client(row: ClientRow) -> bytes:
    """The text of one client's series, which are told on demand only."""
    found = []
    for metric in t.CLIENTS:
        made = family(metric, metric.labels)
        made.add_metric([row.client_id], float(getattr(row, metric.key)))
        found.append(made)
    return bytes(generate_latest(Families(found)))


class FileFigures(NamedTuple):
    """What processes say in files of theirs, each by the name of a function or a bridge."""

    functions: Figures = MappingProxyType({})
    bridges: Figures = MappingProxyType({})


def exposition(
    shards: list[ShardFigures],
    gateway: Mapping[str, float],
    requests: Mapping[Labels, Histogram],
    cluster: Cluster | None = None,
    certificates: Mapping[tuple[str, str], CertificateState] | None = None,
    files: FileFigures | None = None,
    services: ServiceFigures | None = None,
    kafka: KafkaFigures | None = None,
) -> bytes:
    """The text of a scrape. gateway: values of `metric_table.GATEWAY` by name; requests: their durations

    cluster: what this node knows of it; None for a broker alone; certificates: by whose they are, and file
    files: figures of functions and bridges; services: of the gRPC server; None: there is none;
    kafka: of the Kafka server, likewise"""
    found = [
        *plain(shards),
        *labelled(shards),
        *partitions(shards),
        *histograms(shards),
        *cluster_families(cluster, [each.term for each in shards if each.term is not None]),
        *function_families(files.functions if files is not None else {}),
        *bridge_families(files.bridges if files is not None else {}),
        *of_gateway(gateway, requests, certificates or {}),
        *(of_services(services) if services is not None else ()),
        *(of_kafka(kafka) if kafka is not None else ()),
    ]
    return bytes(generate_latest(Families(found)))


def family(metric: t.Metric, labels: Iterable[str]) -> CounterMetricFamily | GaugeMetricFamily:
    made = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
    return made(metric.name.removesuffix("_total"), metric.line, labels=list(labels))


def plain(shards: list[ShardFigures]) -> Iterable[Metric]:
    for metric in (*t.COUNTERS, *t.GAUGES):
        made = family(metric, ["shard"])
        for each in shards:
            values = each.counters if metric.kind == "counter" else each.gauges
            made.add_metric([str(each.shard)], values[metric.key])
        yield made


def labelled(shards: list[ShardFigures]) -> Iterable[Metric]:
    for metric in t.LABELLED:
        made = family(metric, ["shard", *metric.labels])
        for each in shards:
            for labels, value in series_of(each, metric.key):
                made.add_metric([str(each.shard), *labels], value)
        yield made


def series_of(shard: ShardFigures, key: str) -> Iterable[tuple[tuple[str, ...], float]]:
    if key == "lagging":
        known: dict[str, int] = {}
        for each in shard.lagging:  # of several owners' sessions with one client id the one farthest behind
            known[each.client_id] = max(known.get(each.client_id, 0), each.records)
        return [((client,), records) for client, records in known.items()]
    if key == "exports":
        return [(tuple(name.rsplit("/", 1)), behind) for name, behind in shard.exports.items()]
    values: dict[str, int] = getattr(shard, key)
    return [((name,), value) for name, value in values.items()]


def partitions(shards: list[ShardFigures]) -> Iterable[Metric]:
    for metric in t.PARTITIONS:
        made = family(metric, ["shard", *metric.labels])
        for each in shards:
            for row in each.partitions:
                value = {
                    "records": row.next_lsn - row.first_lsn, "next_lsn": row.next_lsn, "bytes": row.bytes,
                    "pending_bytes": row.pending_bytes, "uncommitted": max(0, row.next_lsn - row.committed_lsn),
                    "topics": row.topics, "segments": row.segments, "offline": int(row.offline is not None),
                }[metric.key]  # fmt: skip
                made.add_metric([str(each.shard), row.stream, str(row.partition)], value)
        yield made


def histograms(shards: list[ShardFigures]) -> Iterable[Metric]:
    for metric in t.HISTOGRAMS:
        made = HistogramMetricFamily(metric.name, metric.line, labels=["shard"])
        for each in shards:
            figures = each.histograms.get(metric.key)
            if figures is not None:  # replication is a cluster's
                made.add_metric([str(each.shard)], buckets_of(figures), figures.seconds)
        yield made


def buckets_of(figures: HistogramFigures) -> list[tuple[str, float]]:
    """(upper bound, observations up to it)"""
    found, total = [], 0
    for bound, count in zip((*(f"{bound:g}" for bound in BOUNDS), "+Inf"), figures.counts, strict=True):
        total += count
        found.append((bound, float(total)))
    return found


def of_gateway(
    values: Mapping[str, float], requests: Mapping[Labels, Histogram],
    certificates: Mapping[tuple[str, str], CertificateState],
) -> Iterable[Metric]:  # fmt: skip
    for metric in t.GATEWAY:
        if metric.kind == "histogram":
            durations = HistogramMetricFamily(metric.name, metric.line, labels=metric.labels)
            for labels, each in sorted(requests.items()):
                figures = HistogramFigures(counts=each.counts, seconds=each.seconds)
                durations.add_metric(labels, buckets_of(figures), each.seconds)
            yield durations
            continue
        made = family(metric, metric.labels)
        if metric.labels == ("of", "file"):
            for whose, state in sorted(certificates.items()):
                value = state.expires_at if metric.name.endswith("expires_seconds") else float(state.is_usable)
                made.add_metric(whose, value)
        elif metric.labels:
            for status, count in sorted(by_status(requests).items()):
                made.add_metric([status], count)
        else:
            made.add_metric([], values.get(metric.name, 0.0))
        yield made


def of_services(figures: ServiceFigures) -> Iterable[Metric]:
    for metric in t.SERVICES:
        if metric.kind == "histogram":
            durations = HistogramMetricFamily(metric.name, metric.line, labels=metric.labels)
            for method, each in sorted(figures.seconds.items()):
                durations.add_metric([method], buckets_of(each), each.seconds)
            yield durations
            continue
        made = family(metric, metric.labels)
        if metric.key:
            made.add_metric([], float(getattr(figures, metric.key)))
        elif metric.kind == "gauge":
            for method, count in sorted(figures.open.items()):
                made.add_metric([method], count)
        else:
            for row in figures.calls:
                made.add_metric([row.method, row.code], row.calls)
        yield made


def of_kafka(figures: KafkaFigures) -> Iterable[Metric]:
    for metric in t.KAFKA:
        made = family(metric, metric.labels)
        made.add_metric([], float(getattr(figures, metric.key)))
        yield made


def by_status(requests: Mapping[Labels, Histogram]) -> Counter[str]:
    found: Counter[str] = Counter()
    for (_, _, status), each in requests.items():
        found[status] += sum(each.counts)
    return found

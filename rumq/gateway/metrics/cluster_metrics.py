"""Series of a cluster: what this node knows of it, and the copies of the shards that it leads."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from rumq.admin.answers import Cluster
from rumq.admin.cluster_rows import ShardCopies, TermRow
from rumq.gateway.metrics import metric_table as t

Series = Iterable[tuple[tuple[str, ...], float]]  # values of the labels, and the value


def cluster_families(
    cluster: Cluster | None, terms: Iterable[TermRow]
) -> Iterable[CounterMetricFamily | GaugeMetricFamily]:
    """cluster: None for a broker alone, or if the agent does not answer; terms: of the shards that are led here"""
    led = list(terms)
    known = cluster is not None and cluster.enabled
    for metric in (*t.CLUSTER, *t.LEADER):
        made = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
        found = made(metric.name.removesuffix("_total"), metric.line, labels=list(metric.labels))
        if metric in t.LEADER:
            series: Series = (each for term in led for each in of_term(term, metric.key))
        else:
            series = of_cluster(cluster, metric.key) if cluster is not None and known else ()
        for labels, value in series:
            found.add_metric(list(labels), value)
        yield found


def of_cluster(cluster: Cluster, key: str) -> Series:
    control = cluster.control
    alive = {each.node for each in cluster.nodes if each.alive}
    if key == "nodes":
        return [(("alive",), len(alive)), (("gone",), len(cluster.nodes) - len(alive))]
    if key == "wrong":
        return [((), float(len(cluster.wrong)))]
    if key == "drained":
        return [((), float(any(each.leaves and each.node == cluster.node for each in cluster.nodes)))]
    if key == "control_up":
        return [((), float(cluster.is_current))]
    if key in ("lost_seconds", "renew_seconds", "requests"):
        return [((), float(getattr(control, key)))] if control is not None else []
    if key == "leader":
        return [((str(each.shard), each.leader), 1.0) for each in cluster.shards if each.leader is not None]
    return [((str(each.shard),), of_shard(each, key, alive)) for each in cluster.shards]


def of_shard(shard: ShardCopies, key: str, alive: set[str]) -> float:
    if key == "led":
        return float(shard.leader is not None)
    if key == "members":
        return len(shard.members)
    if key == "gone":
        return sum(each not in alive for each in shard.members)
    return float(getattr(shard, key))


def of_term(term: TermRow, key: str) -> Series:
    shard = str(term.shard)
    if key == "has_quorum":
        return [((shard,), float(term.has_quorum))]
    if key == "in_sync":
        return [((shard,), len(term.in_sync))]
    behind: dict[str, int | None] = getattr(term, key)
    return [((shard, node.partition("#")[0]), count) for node, count in behind.items() if count is not None]

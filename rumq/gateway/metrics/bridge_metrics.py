"""Series of the bridges of a broker, as their process says in its file of figures. docs/guides/bridges.md"""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from rumq.gateway.metrics import metric_table as t
from rumq.gateway.metrics.function_metrics import Figures

DIRECTIONS = ("in", "out")


def bridge_families(figures: Figures) -> Iterable[CounterMetricFamily | GaugeMetricFamily]:
    """figures: by name of the bridge: the keys of the table, those of a direction under its name"""
    for metric in t.BRIDGES:
        made = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
        found = made(metric.name.removesuffix("_total"), metric.line, labels=list(metric.labels))
        for name, each in sorted(figures.items()):
            if "direction" in metric.labels:
                for direction in DIRECTIONS:
                    found.add_metric([name, direction], float(each.get(direction, {}).get(metric.key, 0)))
            else:
                found.add_metric([name], float(each.get(metric.key, 0)))
        yield found

"""Series of the functions of a broker, as their process says in its file of figures. docs/guides/functions.md"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from rumq.gateway.metrics import metric_table as t

Figures = Mapping[str, Mapping[str, Any]]  # by name of the function: the keys of the table, `failures` by kind


def function_families(figures: Figures) -> Iterable[CounterMetricFamily | GaugeMetricFamily]:
    for metric in t.FUNCTIONS:
        made = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
        found = made(metric.name.removesuffix("_total"), metric.line, labels=list(metric.labels))
        for name, each in sorted(figures.items()):
            value = each.get(metric.key, 0)
            if isinstance(value, Mapping):
                for kind, count in sorted(value.items()):
                    found.add_metric([name, kind], float(count))
            else:
                found.add_metric([name], float(value))
        yield found

"""The page of metrics, from `metric_table`.

Made by: python -m rumq.gateway.metrics.metric_docs > docs/reference/metrics.md"""

from __future__ import annotations

from rumq.gateway.metrics import metric_table as t
from rumq.session.state.histogram import BOUNDS

HEAD = f"""# Metrics

`/metrics` of the gateway ([gateway.md](gateway.md)), for Prometheus. This page is made from the table
`rumq/gateway/metrics/metric_table.py`. Every metric of a shard has the label `shard`; counters begin with its process.
In a cluster each node tells of the shards that it leads, so that sums over all nodes count every shard once.
Histograms have {len(BOUNDS)} buckets, each twice as wide as the one before, from {BOUNDS[0] * 1e6:.0f} µs to
{BOUNDS[-1]:.1f} s; one observation stands for all messages of a batch.
"""
GROUPS = {
    "Counters of a shard": t.COUNTERS, "Gauges of a shard": t.GAUGES, "By label": t.LABELLED,
    "By partition": t.PARTITIONS, "Histograms": t.HISTOGRAMS,
    "The cluster, as each node sees it": t.CLUSTER, "Copies of a shard, at the node that leads it": t.LEADER,
    "Functions of a broker alone ([functions.md](../guides/functions.md)), since their process began": t.FUNCTIONS,
    "Bridges of a broker alone ([bridges.md](../guides/bridges.md)), since their process began": t.BRIDGES,
    "The gateway": t.GATEWAY,
    "The gRPC server, while there is one; told by the gateway of its node": t.SERVICES,
    "The Kafka server, likewise": t.KAFKA,
    "Of one client, with `/metrics?client=ID` and a token that may read": t.CLIENTS,
}  # fmt: skip


def page() -> str:
    lines = [HEAD]
    for title, metrics in GROUPS.items():
        lines += [f"## {title}", "", "| metric | kind | labels | meaning |", "|---|---|---|---|"]
        lines += [f"| `{m.name}` | {m.kind} | {', '.join(m.labels)} | {m.line} |" for m in metrics]
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    print(page(), end="")

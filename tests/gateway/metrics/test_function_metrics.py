"""Figures of functions as metrics: one series for each function, failures by kind."""

from rumq.functions.function_counts import FunctionCounts
from rumq.gateway.metrics.exposition import FileFigures, exposition


def test_a_function_is_a_label() -> None:
    counts = FunctionCounts()
    counts.count(records=10, results=7, refused=3)
    counts.failed("stalled")
    counts.stands("main/g1/p0", behind=5, is_held=True)
    text = exposition([], {}, {}, files=FileFigures(functions={"mean": counts.figures()})).decode()
    for line in (
        'rumq_function_records_total{function="mean"} 10.0',
        'rumq_function_refused_records_total{function="mean"} 3.0',
        'rumq_function_failures_total{function="mean",kind="stalled"} 1.0',
        'rumq_function_failures_total{function="mean",kind="raised"} 0.0',
        'rumq_function_behind_records{function="mean"} 5.0',
        'rumq_function_held_partitions{function="mean"} 1.0',
    ):
        assert line in text

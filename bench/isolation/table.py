"""The others' latencies as a table, a line for each neighbour and broker."""

import math
from collections.abc import Iterator

from bench.suite.report import in_one_line
from bench.suite.series import Cell, Series

COLUMNS = (
    ("before_p50_us", "p50"), ("before_p99_us", "p99"), ("before_max_us", "max"),
    ("during_p50_us", "p50"), ("during_p99_us", "p99"), ("during_max_us", "max"),
    ("after_p99_us", "p99"),
)  # fmt: skip
COUNTS = (("lost", "lost"), ("disconnected", "gone"))
WIDTH = 9
LATE_MS = 50.0


def table(series: Series) -> str:
    """Latencies in ms; ratios of during to before."""
    head = " " * 46 + f"{'before':>{3 * WIDTH}}{'during':>{3 * WIDTH}}{'after':>{WIDTH}}{'during/before':>{2 * WIDTH}}"
    names = [name for _, name in COLUMNS] + ["p50", "p99"] + [name for _, name in COUNTS]
    lines = [head, f"{'ms':46}" + "".join(f"{name:>{WIDTH}}" for name in names)]
    for scenario in series.scenarios:
        for peer in series.peers:
            cell = series.cell(scenario.key, peer)
            if cell.runs:
                lines.append(f"{scenario.title:36}{peer:10}" + row(cell))
    return "\n".join([*lines, *notes(series)])


def row(cell: Cell) -> str:
    texts = [f"{cell.median(figure) / 1e3:,.2f}" for figure, _ in COLUMNS]
    texts += [ratio(cell.median("ratio_p50")), ratio(cell.median("ratio_p99"))]
    texts += [f"{cell.median(figure):,.0f}" for figure, _ in COUNTS]
    return "".join(f"{text:>{WIDTH}}" for text in texts)


def ratio(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.2f}x"


def notes(series: Series) -> Iterator[str]:
    for scenario in series.scenarios:
        for peer in series.peers:
            cell = series.cell(scenario.key, peer)
            where = f"! {scenario.title}, {peer}"
            for fault in dict.fromkeys(map(in_one_line, cell.faults)):
                yield f"{where}: failed: {fault}"
            for figure in ("out_of_order_or_twice", "unacknowledged"):
                if any(values := cell.values(figure)):
                    yield f"{where}: {figure.replace('_', ' ')}: {max(values):,.0f} in the worst run"
            if cell.median("generator_late_ms_max") > LATE_MS:
                yield f"{where}: messages were sent up to {cell.median('generator_late_ms_max'):,.0f} ms late"

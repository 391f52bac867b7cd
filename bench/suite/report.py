"""A series as a table for people and as JSON for programs. Knows no broker and measures nothing."""

import datetime
import math
import os
import platform
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from bench.suite.scenario import Scenario
from bench.suite.series import Cell, Series
from bench.suite.standing import UNRATED, behind_and_ahead
from bench.suite.targets import Judged

# Figure: its label, its factor and the format of a value.
LABELS: dict[str, tuple[str, float, str]] = {
    "delivered_per_s": ("delivered msg/s", 1, ",.0f"),
    "published_per_s": ("published msg/s", 1, ",.0f"),
    "lost": ("lost messages", 1, ",.0f"),
    "cpu_us_per_message": ("CPU µs/message", 1, ".3f"),
    "cpu_us_per_delivery": ("CPU µs/delivery", 1, ".3f"),
    "rss_bytes": ("memory MiB", 1 / 2**20, ",.1f"),
    "cpu_us_per_ping": ("CPU µs/ping", 1, ",.2f"),
    "cpu_us_per_connect": ("CPU µs/connect", 1, ",.1f"),
    "cpu_ms_per_s": ("CPU ms/s", 1, ",.1f"),
    "answered_p50_us": ("answer p50 µs", 1, ",.0f"),
    "answered_p99_us": ("answer p99 µs", 1, ",.0f"),
    "answered_p999_us": ("answer p99.9 µs", 1, ",.0f"),
    "bytes_per_connection": ("KiB/connection", 1 / 1024, ",.2f"),
    "latency_p50_us": ("latency p50 µs", 1, ",.0f"),
    "latency_p99_us": ("latency p99 µs", 1, ",.0f"),
    "latency_p999_us": ("latency p99.9 µs", 1, ",.0f"),
    "acknowledged_p50_us": ("PUBACK p50 µs", 1, ",.0f"),
    "acknowledged_p99_us": ("PUBACK p99 µs", 1, ",.0f"),
    "acknowledged_p999_us": ("PUBACK p99.9 µs", 1, ",.0f"),
    "generator_late_p99_us": ("of it before send, p99 µs", 1, ",.0f"),
    "fdatasync_p50_us": ("fdatasync p50 µs", 1, ",.0f"),
    "beyond_sync_p50_us": ("PUBACK p50 beyond it µs", 1, ",.0f"),
    "start_s": ("seconds", 1, ".3f"),
    "restart_s": ("restart, seconds", 1, ".3f"),
    "ratio_p99": ("p99 during/before", 1, ",.2f"),
    "disconnected": ("others disconnected", 1, ",.0f"),
}
# What no broker should do: said under the table wherever it is not zero.
FAULT_FIGURES = (
    "lost", "out_of_order_or_twice", "corrupt", "stray", "redelivered", "unacknowledged",
    "acknowledged_out_of_order",
)  # fmt: skip
WIDTH = 16
BUSY_CORES = 0.9
LATE_MS = 50.0


def table(series: Series) -> str:
    """Medians, a row for each figure; then the ratios of the first peer to each other one.

    Rows in which a peer is ahead of the first one come first: they are what there is to do.
    """
    first, *others = series.peers
    head = [*series.peers, *(f"{first}/{name}" for name in others)]
    lines = [" " * 32 + "".join(f"{name:>{WIDTH}}" for name in head)]
    behind, rest = behind_and_ahead(series)
    for title, part in ((f"A PEER IS AHEAD OF {first.upper()}", behind), ("ALL OTHER FIGURES", rest)):
        if behind and part:
            lines.append(title)
        for rows in part:
            lines += [rows.scenario.title, *durability_row(series, rows.scenario)]
            lines += [row(series, rows.scenario, figure) for figure in rows.figures]
    return "\n".join([*lines, *notes(series)])


def durability_row(series: Series, scenario: Scenario) -> Iterator[str]:
    """What each broker promises in this scenario; a figure means nothing without it."""
    promised = [series.cell(scenario.key, peer).durability for peer in series.peers]
    if any(promised):
        yield f"  {'durability':30}" + "".join(f"{words:>{WIDTH}}" for words in promised)


def row(series: Series, scenario: Scenario, figure: str) -> str:
    cells = [series.cell(scenario.key, peer) for peer in series.peers]
    texts = [shown(cell, figure, with_spread=figure == scenario.figures[0]) for cell in cells]
    if figure not in UNRATED:
        base = cells[0].median(figure)
        texts += [ratio(base, cell.median(figure)) for cell in cells[1:]]
    return f"  {LABELS[figure][0]:30}" + "".join(f"{text:>{WIDTH}}" for text in texts)


def shown(cell: Cell, figure: str, with_spread: bool = False) -> str:
    value = cell.median(figure)
    if math.isnan(value):
        return "failed" if cell.faults else "-"
    _, factor, pattern = LABELS[figure]
    spread = f" ±{100 * cell.spread(figure):.0f}%" if with_spread and len(cell.values(figure)) > 1 else ""
    return f"{value * factor:{pattern}}{spread}"


def ratio(value: float, base: float) -> str:
    return "-" if math.isnan(value) or math.isnan(base) or not base else f"{value / base:.2f}x"


def notes(series: Series) -> Iterator[str]:
    for scenario in series.scenarios:
        for peer in series.peers:
            for note in cell_notes(series.cell(scenario.key, peer)):
                yield f"! {scenario.title}, {peer}: {note}"


def cell_notes(cell: Cell) -> Iterator[str]:
    if cell.why_not:
        yield f"not measured: {cell.why_not}"
    for fault in dict.fromkeys(map(in_one_line, cell.faults)):
        yield f"failed: {fault}"
    for figure in FAULT_FIGURES:
        if any(values := cell.values(figure)):
            yield f"{figure.replace('_', ' ')}: {max(values):,.0f} in the worst run"
    if (late_ms := cell.median("generator_late_ms_max")) > LATE_MS and not cell.values("generator_late_p99_us"):
        yield f"messages were sent up to {late_ms:,.0f} ms behind their time: the rate was not held"
    for figure in ("publishing_cores", "subscribing_cores"):
        if cell.median(figure) > BUSY_CORES:
            yield f"{figure.replace('_', ' ')} {cell.median(figure):.2f}: the generator may be the limit"


def in_one_line(fault: str) -> str:
    """Its beginning and its end: what went wrong stands first, what a broker said last."""
    lines = fault.splitlines()
    return lines[0] if len(lines) < 2 else f"{lines[0]} ... {lines[-1]}"


def targets_table(judged: Sequence[Judged]) -> str:
    lines = []
    for one in judged:
        value = "" if one.value is None else f"{one.value:,.3g}"
        target = one.target
        lines.append(f"{one.verdict:14}{target.scenario:30}{target.figure:24}{target.asks():20}{value:>10}")
    return "\n".join(lines)


def write_json(path: Path, series: Series, judged: Sequence[Judged], settings: dict[str, object]) -> None:
    """All figures of all runs, their medians, the targets and the machine."""
    path.parent.mkdir(parents=True, exist_ok=True)
    cells = [
        {
            "scenario": scenario, "peer": peer,
            "median": {figure: cell.median(figure) for figure in (cell.runs[0] if cell.runs else ())},
            "runs": cell.runs, "faults": cell.faults, "why_not": cell.why_not,
            "durability": cell.durability,
        }
        for (scenario, peer), cell in series.cells.items()
    ]  # fmt: skip
    report = {"settings": settings, "machine": machine(), "results": cells, "targets": list(judged)}
    path.write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=1) + b"\n")


def machine() -> dict[str, object]:
    return {
        "processor": processor(),
        "cores": os.cpu_count(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "load_after": os.getloadavg()[0],
        "data_filesystem": filesystem(tempfile.gettempdir()),
    }


def filesystem(folder: str) -> str:
    """The type of file system that `folder` lies on: on tmpfs a sync costs nothing and proves nothing."""
    mounts = [line.split()[1:3] for line in Path("/proc/mounts").read_text().splitlines()]
    path = Path(folder).resolve()
    holding = [(len(point), kind) for point, kind in mounts if path.is_relative_to(point)]
    return max(holding)[1] if holding else "unknown"


def processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()

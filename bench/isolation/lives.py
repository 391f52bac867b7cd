"""From the others' samples to figures: before, during and after. Pure arithmetic."""

import math
from array import array
from bisect import bisect_left
from collections.abc import Sequence

import msgspec

from bench.isolation.task import Lived
from bench.measure.figures import Figures

BIN_S = 0.25
PHASES = ("before", "during", "after")


class Times(msgspec.Struct, frozen=True):
    """When the neighbour began and ended, and when measuring did, as CLOCK_REALTIME in ns."""

    began_ns: int
    neighbour_ns: int
    quiet_ns: int
    ended_ns: int


class Timeline(msgspec.Struct, frozen=True, kw_only=True):
    """In bins of `BIN_S`: what became of the messages sent in each; None where none was. begin_s, end_s: of the harm"""

    begin_s: float
    end_s: float
    p50_us: list[float | None]
    p99_us: list[float | None]
    max_us: list[float | None]


class Messages:
    """The messages of one run in the order of their sending."""

    def __init__(self, lived: Lived) -> None:
        sent, at_socket, seen = (array("Q", data) for data in (lived.sent_ns, lived.socket_ns, lived.seen_ns))
        order = sorted(range(len(sent)), key=sent.__getitem__)
        self.sent_ns = [sent[at] for at in order]
        self.socket_us = [at_socket[at] / 1e3 for at in order]
        self.seen_us = [seen[at] / 1e3 for at in order]
        self.qos = [lived.qos[at] for at in order]

    def between(self, start_ns: float, stop_ns: float) -> slice:
        return slice(bisect_left(self.sent_ns, start_ns), bisect_left(self.sent_ns, stop_ns))


def percentile(values: Sequence[float], share: float) -> float:
    """Exact; NaN of nothing."""
    if not values:
        return math.nan
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def figures_of(messages: Messages, times: Times) -> Figures:
    """Latencies in µs until the kernel had a message at its subscriber's socket (`seen`: until it was received)."""
    edges = (times.began_ns, times.neighbour_ns, times.quiet_ns, times.ended_ns)
    figures: Figures = {}
    for phase, start_ns, stop_ns in zip(PHASES, edges[:-1], edges[1:], strict=True):
        part = messages.between(start_ns, stop_ns)
        latencies = messages.socket_us[part]
        figures |= {
            f"{phase}_messages": len(latencies),
            f"{phase}_p50_us": percentile(latencies, 0.5),
            f"{phase}_p99_us": percentile(latencies, 0.99),
            f"{phase}_max_us": max(latencies, default=math.nan),
            f"{phase}_seen_p99_us": percentile(messages.seen_us[part], 0.99),
        }
        for qos in (0, 1):
            some = [us for us, level in zip(latencies, messages.qos[part], strict=True) if level == qos]
            figures[f"{phase}_qos{qos}_p99_us"] = percentile(some, 0.99)
    for name in ("p50", "p99", "max", "seen_p99", "qos0_p99", "qos1_p99"):
        figures[f"ratio_{name}"] = figures[f"during_{name}_us"] / figures[f"before_{name}_us"]
    figures["ratio_after_p99"] = figures["after_p99_us"] / figures["before_p99_us"]
    return figures


def timeline_of(messages: Messages, times: Times) -> Timeline:
    bin_ns = int(BIN_S * 1e9)
    parts = [
        messages.socket_us[messages.between(start, min(start + bin_ns, times.ended_ns))]
        for start in range(times.began_ns, times.ended_ns - bin_ns // 2, bin_ns)
    ]

    def row(share: float) -> list[float | None]:
        return [round(percentile(part, share), 1) if part else None for part in parts]

    return Timeline(
        begin_s=(times.neighbour_ns - times.began_ns) / 1e9,
        end_s=(times.quiet_ns - times.began_ns) / 1e9,
        p50_us=row(0.5), p99_us=row(0.99), max_us=row(1.0),
    )  # fmt: skip

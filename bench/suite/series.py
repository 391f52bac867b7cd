"""Runs of scenarios against peers, interleaved (A B C A B C), and their medians.

Interleaved, because a machine gets faster and slower by the minute: neighbours in time are comparable.
"""

import contextlib
import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from bench.connections import Address, BenchFault
from bench.measure.figures import Figures
from bench.measure.measure import measure
from bench.peers.peer import Broker, Peer, running
from bench.suite.scenario import Scenario

# The first figures of scenarios that are worth nothing without the broker's process.
NEED_PID = {"bytes_per_connection", "cpu_us_per_message", "cpu_us_per_ping", "cpu_us_per_connect"}


@dataclass(slots=True)
class Cell:
    """One scenario against one peer. why_not: why there are no runs; faults: of runs that came to nothing.

    durability: what the broker promises in this scenario; empty: unknown
    """

    runs: list[Figures] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    why_not: str = ""
    durability: str = ""

    def values(self, figure: str) -> list[float]:
        return [run[figure] for run in self.runs if not math.isnan(run.get(figure, math.nan))]

    def median(self, figure: str) -> float:
        values = self.values(figure)
        return statistics.median(values) if values else math.nan

    def spread(self, figure: str) -> float:
        """Half the distance from the least to the most, as a share of the median."""
        values, middle = self.values(figure), self.median(figure)
        return (max(values) - min(values)) / 2 / middle if values and middle else 0.0


@dataclass(slots=True)
class Series:
    scenarios: list[Scenario]
    peers: list[str]
    cells: dict[tuple[str, str], Cell] = field(default_factory=dict)

    def cell(self, scenario: str, peer: str) -> Cell:
        return self.cells.setdefault((scenario, peer), Cell())

    def median(self, scenario: str, peer: str, figure: str) -> float:
        cell = self.cells.get((scenario, peer))
        return cell.median(figure) if cell else math.nan


@dataclass(frozen=True, slots=True)
class Attached:
    """A broker that somebody else runs: measured as it stands. pid: whose CPU time and memory, if known."""

    address: Address
    pid: int | None


def run_series(
    scenarios: Sequence[Scenario],
    peers: Sequence[Peer],
    *,
    runs: int,
    seconds: float,
    workers: tuple[int, int] = (1, 1),
    attached: Attached | None = None,
    tell: Callable[[str], None] = print,
) -> Series:
    """Measure every scenario `runs` times against every peer, each time with a fresh broker.

    seconds: how long a measured run takes about; a peer's first run of a scenario fixes its message count
    attached: stands in for the one peer given. A run that fails is kept as a fault and ends nothing.
    """
    series = Series(list(scenarios), [peer.name for peer in peers])
    for scenario in scenarios:
        counts: dict[str, int] = {}
        for number in range(runs):
            for peer in peers:
                cell = series.cell(scenario.key, peer.name)
                cell.why_not = why_not(scenario, peer, attached)
                cell.durability = "" if attached else peer.durability(scenario.load)
                if cell.why_not:
                    continue
                try:
                    with broker(peer, scenario, attached) as one:
                        figures = measure(scenario, one, seconds, counts.get(peer.name, 0), workers)
                except (BenchFault, OSError) as fault:
                    cell.faults.append(str(fault))
                    tell(f"{scenario.key} {peer.name} run {number + 1}/{runs}: failed: {fault}")
                    continue
                counts.setdefault(peer.name, int(figures.get("messages_per_publisher", 0)))
                cell.runs.append(figures)
                first = scenario.figures[0]
                value = figures.get(first, math.nan)
                tell(f"{scenario.key} {peer.name} run {number + 1}/{runs}: {first} {value:,.6g}")
    return series


def why_not(scenario: Scenario, peer: Peer, attached: Attached | None) -> str:
    if attached is None:
        return peer.why_not(scenario.load)
    if scenario.kind == "start":
        return "it already runs"
    if scenario.kind == "redelivery":
        return "it has to be killed"
    if attached.pid is None and scenario.figures[0] in NEED_PID:
        return "needs its pid"
    return ""


@contextlib.contextmanager
def broker(peer: Peer, scenario: Scenario, attached: Attached | None) -> Iterator[Broker]:
    if attached is not None:
        yield Broker(attached.address, attached.pid, math.nan)
        return
    with running(peer, scenario.load) as one:
        yield one

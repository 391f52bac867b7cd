"""The report as one text of parts, which Markdown and HTML are made of. Knows figures, and measures nothing."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bench.compare.charts import Bar, draw
from bench.compare.kept import Kept
from bench.suite.report import LABELS, cell_notes, ratio, shown
from bench.suite.scenario import Scenario
from bench.suite.series import Series
from bench.suite.standing import HIGHER_IS_BETTER, UNRATED

Rows = list[list[str]]
READING = (
    "All brokers run one after the other on one machine, interleaved, each with a fresh data directory; the load "
    "generator shares the cores. Medians of all runs; ± is half the distance from the least run to the most, and a "
    "ratio smaller than that says nothing. Believe ratios, not rates."
)


@dataclass(frozen=True, slots=True)
class Heading:
    level: int
    text: str


@dataclass(frozen=True, slots=True)
class Words:
    text: str


@dataclass(frozen=True, slots=True)
class Code:
    text: str


@dataclass(frozen=True, slots=True)
class Table:
    """The first row is its head; the first column has names, the others numbers."""

    rows: Rows


@dataclass(frozen=True, slots=True)
class Chart:
    """name: of a file"""

    name: str
    svg: str


Part = Heading | Words | Code | Table | Chart


@dataclass(frozen=True, slots=True)
class Facts:
    """What the figures were measured with. commands: of each broker, as it was started"""

    command: str
    machine: dict[str, object]
    versions: dict[str, str]
    commands: dict[str, str]
    seconds: float
    runs: int


def document(series: Series, kept: Sequence[Kept], facts: Facts) -> list[Part]:
    parts: list[Part] = [Heading(1, f"{series.peers[0]} beside {', '.join(series.peers[1:])}"), Words(READING)]
    parts += [Heading(2, "In short"), Table(short(series))]
    parts += [Heading(2, "What is kept after kill -9"), *kept_parts(kept)]
    parts.append(Heading(2, "Each load"))
    for scenario in series.scenarios:
        parts += scenario_parts(series, scenario)
    return [*parts, *facts_parts(facts)]


def short(series: Series) -> Rows:
    """A row for each scenario: its first figure, and how the first broker stands to each other one."""
    first, *others = series.peers
    rows = [["load", "figure", first, *others, *(f"{first} / {name}" for name in others)]]
    for scenario in series.scenarios:
        figure = scenario.figures[0]
        rows.append([scenario.title, LABELS[figure][0], *cells(series, scenario, figure)])
    return rows


def cells(series: Series, scenario: Scenario, figure: str) -> Iterator[str]:
    found = [series.cell(scenario.key, peer) for peer in series.peers]
    yield from (shown(cell, figure, with_spread=True) for cell in found)
    own = found[0].median(figure)
    for cell in found[1:]:
        yield "" if figure in UNRATED else ratio(own, cell.median(figure))


def kept_parts(kept: Sequence[Kept]) -> Iterator[Part]:
    yield Words(
        "A publisher at QoS 1 has 500 messages in flight to a session that is away; the broker is killed with SIGKILL "
        "and started again. Lost is what it had acknowledged and never delivers. A kill takes a process, not the page "
        "cache: of a power loss it says nothing, the promise does."
    )
    head = ["broker", "its promise", "acknowledged", "lost", "twice", "restart, s"]
    yield Table([head, *([one.peer, one.durability, *counts_of(one)] for one in kept)])


def counts_of(one: Kept) -> list[str]:
    if one.why_not:
        return [one.why_not, "", "", ""]
    return [f"{one.acknowledged:,}", f"{one.lost:,}", f"{one.twice:,}", f"{one.restart_s:.2f}"]


def scenario_parts(series: Series, scenario: Scenario) -> Iterator[Part]:
    yield Heading(3, scenario.title)
    figure = scenario.figures[0]
    bars = [bar for peer in series.peers if (bar := bar_of(series, scenario, peer, figure)) is not None]
    if bars:
        better = "more" if figure in HIGHER_IS_BETTER else "less"
        yield Chart(scenario.key, draw(scenario.title, f"{LABELS[figure][0]}, {better} is better", bars))
    first, *others = series.peers
    rows = [["", first, *others, *(f"{first} / {name}" for name in others)]]
    promised = [series.cell(scenario.key, peer).durability for peer in series.peers]
    rows.append(["durability", *promised, *("" for _ in others)])
    rows += [[LABELS[each][0], *cells(series, scenario, each)] for each in scenario.figures]
    yield Table(rows)
    for peer in series.peers:
        for note in cell_notes(series.cell(scenario.key, peer)):
            yield Words(f"{peer}: {note}")


def bar_of(series: Series, scenario: Scenario, peer: str, figure: str) -> Bar | None:
    cell = series.cell(scenario.key, peer)
    values, median = cell.values(figure), cell.median(figure)
    if math.isnan(median):
        return None
    return Bar(peer, median, min(values), max(values), shown(cell, figure))


def facts_parts(facts: Facts) -> Iterator[Part]:
    yield Heading(2, "How it was measured")
    yield Table([["", ""], *([name.replace("_", " "), str(value)] for name, value in facts.machine.items())])
    yield Table([["broker", "version"], *([name, line] for name, line in facts.versions.items())])
    yield Words(f"{facts.runs} runs of about {facts.seconds:g} s each. The command, and how each broker was started:")
    lines = [facts.command, "", *(f"{name}: {command}" for name, command in facts.commands.items())]
    yield Code("\n".join(lines))

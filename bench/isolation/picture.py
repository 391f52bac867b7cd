"""The others' latency through time, a small panel for each neighbour, as one SVG for light and dark pages.

Knows timelines, and no broker. All panels have one scale, a logarithmic one, so that they can be compared.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from bench.isolation.lives import BIN_S, Timeline

COLUMNS = 3
PANEL_WIDTH, PANEL_HEIGHT = 262, 112
GAP_X, GAP_Y = 26, 50
LEFT, TOP, BOTTOM, RIGHT = 58, 96, 46, 18
STYLE = """
  svg { background: #ffffff; font-family: system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; }
  .title { font-size: 17px; font-weight: 600; fill: #1b1f24; }
  .panel { font-size: 12.5px; font-weight: 600; fill: #1b1f24; }
  .small { font-size: 11px; fill: #57606a; }
  .number { font-size: 11px; fill: #57606a; text-anchor: end; }
  .middle { text-anchor: middle; }
  .grid { stroke: #d8dee4; stroke-width: 1; }
  .harm { fill: #fbe3cf; }
  .line { fill: none; stroke-width: 2; stroke-linejoin: round; stroke-linecap: round; }
  .p99 { stroke: #0b63c5; }
  .p50 { stroke: #0b63c5; stroke-width: 1.2; opacity: 0.55; }
  .peer { stroke: #8c959f; stroke-width: 1.5; stroke-dasharray: 4 3; }
  @media (prefers-color-scheme: dark) {
    svg { background: #0d1117; }
    .title, .panel { fill: #e6edf3; }
    .small, .number { fill: #9aa4af; }
    .grid { stroke: #2b323b; }
    .harm { fill: #45301d; }
    .p99, .p50 { stroke: #6cb2ff; }
    .peer { stroke: #7d8590; }
  }
"""


@dataclass(frozen=True, slots=True)
class Panel:
    """One neighbour. lines: of each broker; the first one is the subject, others are there to compare"""

    title: str
    lines: Mapping[str, Timeline]


@dataclass(frozen=True, slots=True)
class Scale:
    """What all panels share: seconds along, µs up, whole decades."""

    seconds: float
    low: int
    high: int

    def x(self, seconds: float) -> float:
        return PANEL_WIDTH * min(1.0, max(0.0, seconds / self.seconds))

    def y(self, us: float) -> float:
        share = (math.log10(max(us, 1e-9)) - self.low) / (self.high - self.low)
        return PANEL_HEIGHT * (1 - min(1.0, max(0.0, share)))

    def decades(self) -> range:
        return range(self.low, self.high + 1)


def draw(panels: Sequence[Panel]) -> str:
    rows = max(1, -(-len(panels) // COLUMNS))
    width = LEFT + COLUMNS * PANEL_WIDTH + (COLUMNS - 1) * GAP_X + RIGHT
    height = TOP + rows * PANEL_HEIGHT + (rows - 1) * GAP_Y + BOTTOM
    scale = scale_of(panels)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" role="img">',
            "<title>Latency of well-behaved clients before, while and after a neighbour misbehaves</title>",
            f"<style>{STYLE}</style>",
            f'<rect width="{width}" height="{height}" fill="none"/>',
            *legend(panels),
            *(line for number, panel in enumerate(panels) for line in placed(number, panel, scale, len(panels))),
            "</svg>",
            "",
        ]
    )


def scale_of(panels: Sequence[Panel]) -> Scale:
    timelines = [timeline for panel in panels for timeline in panel.lines.values()]
    values = [us for one in timelines for us in (*one.p50_us, *one.p99_us) if us]
    seconds = max((len(one.p99_us) * BIN_S for one in timelines), default=1.0)
    low = math.floor(math.log10(min(values, default=100.0)))
    high = math.ceil(math.log10(max(values, default=1000.0)))
    return Scale(seconds, low, max(high, low + 2))


def legend(panels: Sequence[Panel]) -> Iterator[str]:
    yield f'<text class="title" x="{LEFT}" y="30">What the others notice of a neighbour</text>'
    yield (
        f'<text class="small" x="{LEFT}" y="49">Latency of 2,000 messages a second from 10 clients to 10 others, '
        f"publish to delivery, in bins of {BIN_S:g} s</text>"
    )
    peers = sorted({name for panel in panels for name in list(panel.lines)[1:]})
    subject = next((name for panel in panels for name in panel.lines), "")
    x = LEFT
    for style, words in [
        ("p99", f"{subject} p99"),
        ("p50", "median"),
        *(("peer", f"{name} p99") for name in peers),
    ]:
        yield f'<path class="line {style}" d="M{x} 66h22"/>'
        yield f'<text class="small" x="{x + 28}" y="70">{escape(words)}</text>'
        x += 46 + round(6.2 * len(words))
    yield f'<rect class="harm" x="{x}" y="59" width="22" height="14"/>'
    yield f'<text class="small" x="{x + 28}" y="70">the neighbour misbehaves</text>'


def placed(number: int, panel: Panel, scale: Scale, count: int) -> Iterator[str]:
    """A panel at its place; numbers up stand at the first of a row, numbers along under the last of a column."""
    row, column = divmod(number, COLUMNS)
    x, y = LEFT + column * (PANEL_WIDTH + GAP_X), TOP + 14 + row * (PANEL_HEIGHT + GAP_Y)
    yield f'<g transform="translate({x} {y})">'
    yield f'<text class="panel" y="-8">{escape(panel.title)}</text>'
    first = next(iter(panel.lines.values()))
    start, stop = scale.x(first.begin_s), scale.x(first.end_s)
    yield f'<rect class="harm" x="{start:.1f}" width="{stop - start:.1f}" height="{PANEL_HEIGHT}"/>'
    for decade in scale.decades():
        at = scale.y(10.0**decade)
        yield f'<path class="grid" d="M0 {at:.1f}h{PANEL_WIDTH}"/>'
        if column == 0:
            yield f'<text class="number" x="-7" y="{at + 4:.1f}">{named(decade)}</text>'
    if number + COLUMNS >= count:
        for second in range(0, math.floor(scale.seconds) + 1, 2):
            unit = " s" if second == 0 else ""
            yield (
                f'<text class="small middle" x="{scale.x(second):.1f}" y="{PANEL_HEIGHT + 16}">{second}{unit}</text>'
            )
    for place, timeline in reversed(list(enumerate(panel.lines.values()))):
        if place == 0:
            yield f'<path class="line p50" d="{path(timeline.p50_us, scale)}"/>'
        yield f'<path class="line {"peer" if place else "p99"}" d="{path(timeline.p99_us, scale)}"/>'
    yield "</g>"


def path(values: Sequence[float | None], scale: Scale) -> str:
    """A line through the middles of the bins; it breaks where there was no message."""
    steps, command = [], "M"
    for number, us in enumerate(values):
        if us is None:
            command = "M"
            continue
        steps.append(f"{command}{scale.x((number + 0.5) * BIN_S):.1f} {scale.y(us):.1f}")
        command = "L"
    return "".join(steps)


def named(decade: int) -> str:
    """Ten to the `decade` µs in words."""
    unit, power = ("µs", decade) if decade < 3 else ("ms", decade - 3) if decade < 6 else ("s", decade - 6)
    return f"{10**power:,} {unit}"

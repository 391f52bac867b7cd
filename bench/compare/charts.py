"""A figure of one scenario as bars, an SVG for light and dark pages: medians, and whiskers from the least to the most.

Knows numbers and names; no broker, no file."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

WIDTH, LEFT, RIGHT, TOP, ROW, BAR = 640, 110, 130, 34, 26, 16
STYLE = """
  svg { font-family: system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; }
  text { font-size: 12px; fill: #1b1f24; }
  .title { font-weight: 600; }
  .small { fill: #57606a; }
  .end { text-anchor: end; }
  .first { fill: #0b63c5; }
  .other { fill: #8c959f; }
  .whisker { stroke: #1b1f24; stroke-width: 1.2; fill: none; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; }
    .small { fill: #9aa4af; }
    .first { fill: #6cb2ff; }
    .other { fill: #6e7681; }
    .whisker { stroke: #e6edf3; }
  }
"""


@dataclass(frozen=True, slots=True)
class Bar:
    """value: the median; words: as it is written; low, high: of all runs"""

    name: str
    value: float
    low: float
    high: float
    words: str


def draw(title: str, figure: str, bars: Sequence[Bar]) -> str:
    """The first bar is the subject's, in a color of its own."""
    height = TOP + ROW * len(bars) + 8
    most = max((bar.high for bar in bars), default=0.0) or 1.0
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
            f'viewBox="0 0 {WIDTH} {height}" role="img">',
            f"<title>{escape(title)}: {escape(figure)}</title>",
            f"<style>{STYLE}</style>",
            f'<text class="title" x="0" y="18">{escape(title)} <tspan class="small">{escape(figure)}</tspan></text>',
            *(line for number, bar in enumerate(bars) for line in placed(bar, number, most)),
            "</svg>",
            "",
        ]
    )


def placed(bar: Bar, number: int, most: float) -> Iterator[str]:
    room = WIDTH - LEFT - RIGHT
    y = TOP + ROW * number
    middle = y + BAR / 2
    at, low, high = (LEFT + room * value / most for value in (bar.value, bar.low, bar.high))
    yield f'<text class="end" x="{LEFT - 8}" y="{middle + 4}">{escape(bar.name)}</text>'
    color = "other" if number else "first"
    yield f'<rect class="{color}" x="{LEFT}" y="{y}" width="{at - LEFT:.1f}" height="{BAR}" rx="2"/>'
    if high > low:
        ends = "".join(f"M{x:.1f} {y + 4}v{BAR - 8}" for x in (low, high))
        yield f'<path class="whisker" d="M{low:.1f} {middle}H{high:.1f}{ends}"/>'
    yield f'<text x="{max(at, high) + 8:.1f}" y="{middle + 4}">{escape(bar.words)}</text>'

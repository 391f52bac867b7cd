"""Gaps of publishers as one SVG for light and dark pages: a histogram for each kind of harm, logarithmic."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from xml.sax.saxutils import escape

from tests.cluster.live.gaps import Gap, quantile

WIDTH, ROW, LEFT, TOP, RIGHT, BOTTOM = 860, 62, 210, 74, 150, 34
LOW_S, HIGH_S, BINS = 0.01, 100.0, 60
MARKS_S = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
STYLE = """
  svg { background: #ffffff; font-family: system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; }
  .title { font-size: 17px; font-weight: 600; fill: #1b1f24; }
  .name { font-size: 12.5px; font-weight: 600; fill: #1b1f24; text-anchor: end; }
  .small { font-size: 11px; fill: #57606a; }
  .middle { text-anchor: middle; }
  .grid { stroke: #d8dee4; stroke-width: 1; }
  .bar { fill: #0b63c5; }
  .median { stroke: #c2410c; stroke-width: 1.5; }
  @media (prefers-color-scheme: dark) {
    svg { background: #0d1117; }
    .title, .name { fill: #e6edf3; }
    .small { fill: #9aa4af; }
    .grid { stroke: #2b323b; }
    .bar { fill: #6cb2ff; }
    .median { stroke: #fb923c; }
  }
"""


def draw(gaps: Sequence[Gap]) -> str:
    kinds = list(dict.fromkeys(gap.kind for gap in gaps))
    height = TOP + ROW * len(kinds) + BOTTOM
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}" role="img">',
        "<title>How long publishers waited for an acknowledgement when a cluster was harmed</title>",
        f"<style>{STYLE}</style>",
        '<text class="title" x="24" y="30">Longest wait for an acknowledgement, for each harm</text>',
        f'<text class="small" x="24" y="49">{len(gaps):,} harms to three nodes and three etcd on one machine; '
        "the largest gap of all publishers; the line is the median</text>",
        *scale(height),
        *(line for number, kind in enumerate(kinds) for line in row(number, kind, gaps)),
        "</svg>", "",
    ])  # fmt: skip


def along(seconds: float) -> float:
    share = math.log(min(max(seconds, LOW_S), HIGH_S) / LOW_S) / math.log(HIGH_S / LOW_S)
    return LEFT + share * (WIDTH - LEFT - RIGHT)


def scale(height: int) -> Iterator[str]:
    for mark in MARKS_S:
        x = along(mark)
        words = f"{mark:g} s" if mark >= 1 else f"{1000 * mark:g} ms"
        yield f'<path class="grid" d="M{x:.1f} {TOP}V{height - BOTTOM}"/>'
        yield f'<text class="small middle" x="{x:.1f}" y="{height - BOTTOM + 17}">{words}</text>'


def row(number: int, kind: str, gaps: Sequence[Gap]) -> Iterator[str]:
    values = [gap.seconds for gap in gaps if gap.kind == kind]
    base = TOP + ROW * (number + 1) - 6
    counts = [0] * BINS
    for value in values:
        share = (along(value) - LEFT) / (WIDTH - LEFT - RIGHT)
        counts[min(BINS - 1, int(share * BINS))] += 1
    wide = (WIDTH - LEFT - RIGHT) / BINS
    yield f'<text class="name" x="{LEFT - 12}" y="{base - 12}">{escape(kind)}</text>'
    for place, count in enumerate(counts):
        if count:
            tall = (ROW - 14) * count / max(counts)
            yield (
                f'<rect class="bar" x="{LEFT + place * wide:.1f}" y="{base - tall:.1f}" width="{wide - 0.8:.1f}" '
                f'height="{tall:.1f}"><title>{count}</title></rect>'
            )
    middle = along(quantile(values, 0.5))
    yield f'<path class="median" d="M{middle:.1f} {base - ROW + 12}V{base}"/>'
    figures = [words(quantile(values, share)) for share in (0.5, 0.99)] + [words(max(values))]
    yield f'<text class="small" x="{WIDTH - RIGHT + 12}" y="{base - 26}">{len(values)} times, p50 {figures[0]}</text>'
    yield f'<text class="small" x="{WIDTH - RIGHT + 12}" y="{base - 12}">p99 {figures[1]}, worst {figures[2]}</text>'


def words(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 1 else f"{1000 * seconds:.0f} ms"

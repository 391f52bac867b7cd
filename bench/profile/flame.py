"""A flame graph as one SVG, for light and dark pages: a box's width is its share of the samples. Brendan Gregg, 2011.

Knows folded stacks, and no profiler. The name of a narrow box is in its tooltip."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.sax.saxutils import escape

from bench.profile.stacks import Frame, Kind, Stack, shares

WIDTH, ROW, TOP, MARGIN = 1200.0, 17, 62, 10
# Narrower boxes are left out with all that is above them.
NARROWEST = 0.6
LETTER, LETTERS_MIN = 6.6, 4
WORDS: dict[Kind, str] = {
    "kernel": "the kernel", "interpreter": "the interpreter", "rumq": "rumq, compiled", "library": "libraries",
}  # fmt: skip
STYLE = """
  svg { background: #ffffff; font-family: system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; }
  text { font-size: 11px; fill: #1b1f24; }
  .title { font-size: 16px; font-weight: 600; }
  rect { stroke: #ffffff; stroke-width: 0.6; }
  .kernel { fill: #c9d1d9; }
  .interpreter { fill: #f4a261; }
  .rumq { fill: #8ecae6; }
  .library { fill: #d9c8ec; }
  @media (prefers-color-scheme: dark) {
    svg { background: #0d1117; }
    .title, .words { fill: #e6edf3; }
    rect { stroke: #0d1117; }
  }
"""


@dataclass(slots=True)
class Node:
    """All samples that have the same frames up to here."""

    samples: int = 0
    inner: dict[Frame, "Node"] = field(default_factory=dict)


def tree_of(seen: Counter[Stack]) -> Node:
    root = Node()
    for stack, count in seen.items():
        node = root
        node.samples += count
        for frame in stack:
            node = node.inner.setdefault(frame, Node())
            node.samples += count
    return root


@dataclass(frozen=True, slots=True)
class Box:
    """depth: 0 for the outermost frames; x, width: in the units of the picture"""

    frame: Frame
    depth: int
    x: float
    width: float
    samples: int


def boxes(node: Node, per_sample: float, x: float = 0.0, depth: int = 0) -> Iterator[Box]:
    """Those of `node`'s inner frames and all above, by name from left to right, wide enough to be seen."""
    for frame, inner in sorted(node.inner.items()):
        width = inner.samples * per_sample
        if width >= NARROWEST:
            yield Box(frame, depth, x, width, inner.samples)
            yield from boxes(inner, per_sample, x, depth + 1)
        x += width


def draw(seen: Counter[Stack], title: str) -> str:
    """An SVG document; the outermost frames are at the bottom."""
    root = tree_of(seen)
    total = max(1, root.samples)
    some = list(boxes(root, WIDTH / total))
    depth = max((box.depth for box in some), default=0) + 1
    height = TOP + depth * ROW + MARGIN
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH + 2 * MARGIN:g} {height}" role="img">',
        f"<style>{STYLE}</style>",
        f'<text class="title" x="{MARGIN}" y="22">{escape(title)}</text>',
        *legend(seen, root.samples),
    ]
    for box in some:
        y = TOP + (depth - 1 - box.depth) * ROW
        words = escape(f"{box.frame.name}: {100 * box.samples / total:.1f} %")
        lines.append(
            f'<g><title>{words}</title><rect class="{box.frame.kind}" x="{MARGIN + box.x:.1f}" y="{y}" '
            f'width="{box.width:.1f}" height="{ROW}" rx="2"/>{label(box, y)}</g>'
        )
    return "\n".join([*lines, "</svg>", ""])


def legend(seen: Counter[Stack], samples: int) -> Iterator[str]:
    x = MARGIN
    for kind, share in shares(seen).items():
        words = f"{WORDS[kind]} {100 * share:.0f} %"
        yield f'<rect class="{kind}" x="{x}" y="32" width="12" height="12" rx="2"/>'
        yield f'<text class="words" x="{x + 17}" y="42">{words}</text>'
        x += 30 + round(len(words) * LETTER)
    yield f'<text class="words" x="{x}" y="42">of {samples:,} samples, by the innermost frame</text>'


def label(box: Box, y: int) -> str:
    letters = int((box.width - 6) / LETTER)
    if letters < LETTERS_MIN:
        return ""
    name = box.frame.name
    shown = name if len(name) <= letters else f"{name[: letters - 1]}…"
    return f'<text x="{MARGIN + box.x + 3:.1f}" y="{y + 12}">{escape(shown)}</text>'

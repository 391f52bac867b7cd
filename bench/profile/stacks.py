"""Samples of a profiler as folded stacks: what `perf script` prints, and what `py-spy --format raw` writes.

Runs nothing and draws nothing."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

Kind = Literal["kernel", "interpreter", "rumq", "library"]
# As `perf script -F comm,ip,sym,dso` prints a frame, the innermost one first.
FRAME = re.compile(r"^\s+[0-9a-f]+ (?P<name>.+) \((?P<place>[^()]*|\[[^()]*\])\)$")
MANGLED = re.compile(r"^__pyx_(?:pf|pw|f|fuse_\w+?)_(?P<rest>\d.*)$")
# Of `function (file:line)`: all but the file.
PY_SPY_PLACE = re.compile(r"^.*\(|:\d+\)$")
OFFSET = re.compile(r"\+0x[0-9a-f]+$")
OURS = ("rumq", "router", "commitlog")


class Frame(NamedTuple):
    name: str
    kind: Kind


Stack = tuple[Frame, ...]  # the outermost frame first


def from_perf(lines: Iterable[str]) -> Counter[Stack]:
    """How often each stack was seen."""
    seen: Counter[Stack] = Counter()
    frames: list[Frame] = []
    for line in (*lines, ""):
        if found := FRAME.match(line):
            frames.append(Frame(readable(found["name"]), kind_of(found["name"], found["place"])))
        elif not line.strip() and frames:
            seen[tuple(reversed(frames))] += 1
            frames = []
    return seen


def from_py_spy(lines: Iterable[str]) -> Counter[Stack]:
    """Of folded lines `outermost;...;innermost count`; native frames among them."""
    seen: Counter[Stack] = Counter()
    for line in lines:
        names, _, count = line.rpartition(" ")
        if names and count.isdecimal():
            seen[tuple(Frame(name, kind_of(name, PY_SPY_PLACE.sub("", name))) for name in names.split(";"))] += int(
                count
            )
    return seen


def kind_of(name: str, place: str) -> Kind:
    """place: the program, library or source file that a function is in"""
    if "kernel" in place.strip("[]").split(".") or place.endswith(".ko"):
        return "kernel"
    file = place.rpartition("/")[2]
    if name.startswith("__pyx_") or any(f"/{top}/" in place or place.startswith(f"{top}/") for top in OURS):
        return "rumq"
    if file.startswith(("libpython", "python3")) or file == "python":
        return "interpreter"
    return "library"


def readable(name: str) -> str:
    """A C name that Cython made, as `package.module.Class.function`; others as they are, without their offset."""
    plain = OFFSET.sub("", name)
    found = MANGLED.match(plain)
    return ".".join(parts_of(found["rest"])) if found else plain


def parts_of(mangled: str) -> Iterator[str]:
    """Of `4rumq_3net_4pump_4Pump_2turn`: each name has its length before it, the last one its number in the module."""
    while found := re.match(r"(\d+)", mangled):
        start = found.end()
        end = start + int(found[1])
        if mangled[end : end + 1] != "_":
            break
        yield mangled[start:end]
        mangled = mangled[end + 1 :]
    yield mangled.lstrip("0123456789")


def shares(seen: Counter[Stack]) -> dict[Kind, float]:
    """Of all samples, the share whose innermost frame is of each kind."""
    total = seen.total() or 1
    found: Counter[Kind] = Counter()
    for stack, count in seen.items():
        found[stack[-1].kind] += count
    return {kind: count / total for kind, count in found.most_common()}


def hottest(seen: Counter[Stack], count: int) -> list[tuple[Frame, float]]:
    """The frames that most samples were taken in, themselves, with their share."""
    found: Counter[Frame] = Counter()
    for stack, samples in seen.items():
        found[stack[-1]] += samples
    total = seen.total() or 1
    return [(frame, samples / total) for frame, samples in found.most_common(count)]

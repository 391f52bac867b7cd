"""`python -m bench cost`: what a message costs the broker, by pattern and by module. One table.

pattern                       instructions  CPU µs
QoS 1 alone, process               197,000    60.1"""

import argparse
import sys
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from pathlib import Path

from bench.connections import BenchFault, allow_files
from bench.cost.callgrind import UnderCallgrind, by_module, why_not
from bench.cost.measured import cpu_us, instructions
from bench.cost.patterns import PATTERNS, Pattern
from bench.load.load import Load
from bench.peers import PEERS
from bench.peers.peer import Peer, running
from bench.peers.rumq import Rumq

OK, FAILED = 0, 1
COUNTED_START_S = 120.0  # under callgrind a start takes 9 s of CPU time
MODULES = 24  # lines of the table by module
Figures = dict[str, tuple[float, dict[str, tuple[float, float]]]]


class QuietRumq(Rumq):
    """Without messages of its own, which would be counted in with those of some pattern."""

    def command(self, load: Load, folder: Path, port: int) -> list[str]:
        return [*super().command(load, folder, port), "--set", "sys.interval_seconds=0"]


def main(arguments: Sequence[str]) -> int:
    args = parser().parse_args(arguments)
    allow_files()
    peer = QuietRumq() if args.peer == Rumq.name else PEERS[args.peer]
    patterns = [PATTERNS[key] for key in args.pattern or PATTERNS]
    try:
        counted = {} if args.cpu_only else count(peer, patterns, args.steps, args.keep)
        cpu = {} if args.count_only else measure_cpu(peer, patterns, args.seconds)
    except (BenchFault, OSError) as fault:
        print(f"bench: {fault}", file=sys.stderr)
        return FAILED
    print(table(patterns, counted, cpu))
    return OK


def count(peer: Peer, patterns: Sequence[Pattern], steps: int, keep: Path | None = None) -> Figures:
    """Pattern -> instructions a message, and by module (own, with the interpreter's). Empty where none can be counted.

    keep: where callgrind's files are to stay, counted.1 and so on for callgrind_annotate(1)"""
    if reason := why_not():
        print(f"bench: no instructions: {reason}", file=sys.stderr)
        return {}
    found: Figures = {}
    for durability, alike in by_durability(patterns):
        kept = None if keep is None else keep / durability
        if kept is not None:
            kept.mkdir(parents=True, exist_ok=True)
        with nullcontext(kept) if kept else tempfile.TemporaryDirectory(prefix="bench-cost-") as folder:
            watched = UnderCallgrind(peer, Path(folder).resolve())
            with running(watched, alike[0].load, COUNTED_START_S) as broker:
                for pattern in alike:
                    print(f"bench: counting {pattern.title} ({durability})", file=sys.stderr)
                    counts = instructions(broker, watched, pattern, steps)
                    messages = steps * pattern.messages
                    modules = {
                        name: (own / messages, whole / messages) for name, (own, whole) in by_module(counts).items()
                    }
                    found[pattern.key] = counts.total / messages, modules
    return found


def measure_cpu(peer: Peer, patterns: Sequence[Pattern], seconds: float) -> dict[str, float]:
    """Pattern -> µs a message."""
    found = {}
    for _, alike in by_durability(patterns):
        with running(peer, alike[0].load) as broker:
            for pattern in alike:
                found[pattern.key] = cpu_us(broker, pattern, seconds)
    return found


def by_durability(patterns: Iterable[Pattern]) -> list[tuple[str, list[Pattern]]]:
    """Those that one broker can serve."""
    found: dict[str, list[Pattern]] = {}
    for pattern in patterns:
        found.setdefault(pattern.durability, []).append(pattern)
    return list(found.items())


def table(patterns: Sequence[Pattern], counted: Figures, cpu: dict[str, float]) -> str:
    lines = [f"{'a message':32}{'instructions':>14}{'CPU µs':>9}"]
    for pattern in patterns:
        total = f"{counted[pattern.key][0]:,.0f}" if pattern.key in counted else "-"
        spent = f"{cpu[pattern.key]:,.1f}" if pattern.key in cpu else "-"
        lines.append(f"{pattern.title:32}{total:>14}{spent:>9}")
    shown = [pattern for pattern in patterns if pattern.key in counted]
    if not shown:
        return "\n".join(lines)
    lines += ["", "instructions of a module, with those of the interpreter and of libraries that it called:"]
    heads = "".join(f"{pattern.key:>17}" for pattern in shown)
    lines.append(f"{'':52}{heads}")
    most = {
        name: max(counted[pattern.key][1].get(name, (0, 0))[1] for pattern in shown)
        for pattern in shown
        for name in counted[pattern.key][1]
    }
    for name in sorted(most, key=most.__getitem__, reverse=True)[:MODULES]:
        cells = "".join(f"{counted[pattern.key][1].get(name, (0, 0))[1]:17,.0f}" for pattern in shown)
        lines.append(f"{name:52}{cells}")
    return "\n".join(lines)


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m bench cost", description=__doc__.partition("\n")[0])
    made.add_argument(
        "--pattern", action="append", choices=list(PATTERNS), metavar="NAME", help="may be repeated [all]"
    )
    made.add_argument("--peer", choices=list(PEERS), default="rumq", help="[rumq]")
    made.add_argument("--steps", type=int, default=100, metavar="N", help="that are counted of each pattern [100]")
    made.add_argument("--seconds", type=float, default=2.0, metavar="S", help="of CPU time of each pattern [2]")
    made.add_argument("--keep", type=Path, metavar="DIR", help="callgrind's files, for callgrind_annotate")
    made.add_argument("--count-only", action="store_true", help="instructions, no CPU time")
    made.add_argument("--cpu-only", action="store_true", help="CPU time, no instructions")
    return made

"""`python -m bench kafka`: records fetched for a second of CPU, a view, latency, and consumers that wait."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.connections import BenchFault, allow_files

OK, FAILED, REFUSED = 0, 1, 2
PARTS = ("fetch", "latency", "idle")
EXAMPLES = """\
examples:
  python -m bench kafka                            all of it
  python -m bench kafka fetch --runs 3             old records: plain, with four headers, and a view
  python -m bench kafka latency                    publish to consume, 50 and 1,000 msg/s
"""


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench kafka", description=__doc__, epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)} [all]")
    parser.add_argument("--runs", type=int, default=3, metavar="N", help="[3]")
    parser.add_argument("--seconds", type=float, default=5.0, metavar="S", help="of a run of latency and idle [5]")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    args = parser.parse_args(argv)
    if unknown := set(args.parts) - set(PARTS):
        parser.error(f"{', '.join(unknown)}: expected of {', '.join(PARTS)}")
    try:
        from bench.kafka.fetches import fetches
        from bench.kafka.idle import idle
        from bench.kafka.latency import latency
    except ImportError as fault:
        print(f'bench: {fault}: pip install "rumq[kafka]"', file=sys.stderr)
        return REFUSED
    allow_files()
    measures: dict[str, Callable[[], dict[str, float]]] = {
        "fetch": lambda: fetches(args.runs),
        "latency": lambda: latency(args.runs, args.seconds),
        "idle": lambda: idle(args.seconds),
    }
    found: dict[str, dict[str, float]] = {}
    try:
        for part in args.parts or PARTS:
            print(f"{part}:", flush=True)
            found[part] = measures[part]()
            for name, value in found[part].items():
                print(f"  {name:75}{value:14,.3f}", flush=True)
    except (BenchFault, RuntimeError) as fault:
        print(f"bench: {fault}", file=sys.stderr)
        return FAILED
    if args.json is not None:
        args.json.write_text(json.dumps(found, indent=1))
    return OK

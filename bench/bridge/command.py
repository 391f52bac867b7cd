"""`python -m bench bridge`: messages a second over a bridge between two brokers, all on this machine."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.bridge.relaying import measure
from bench.connections import BenchFault

OK, FAILED = 0, 1


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench bridge", description=__doc__)
    parser.add_argument("--seconds", type=float, default=3.0, metavar="S", help="of each run, about [3]")
    parser.add_argument("--qos", type=int, choices=[0, 1, 2], action="append", help="may be repeated [0 and 1]")
    parser.add_argument("--inflight", type=int, default=1_000, metavar="N", help="inflight_max of the bridge [1000]")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    args = parser.parse_args(argv)
    found = {}
    try:
        for qos in args.qos or (0, 1):
            found[f"qos{qos}"] = measure(qos, args.seconds, args.inflight)
    except BenchFault as fault:
        print(f"bench: {fault}", file=sys.stderr)
        return FAILED
    for name, figures in found.items():
        print(name)
        for what, value in figures.items():
            print(f"  {what:30}{value:14,.1f}")
    if args.json is not None:
        args.json.write_text(json.dumps(found, indent=1))
    return OK

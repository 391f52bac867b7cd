"""`python -m bench outbox`: a broker away for a minute while its client publishes, and is killed twice."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.connections import BenchFault
from bench.outbox.away import measure

OK, FAILED = 0, 1


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench outbox", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, metavar="S", help="that the broker is away [60]")
    parser.add_argument("--rate", type=int, default=2_000, metavar="N", help="messages a second, 64 bytes [2000]")
    parser.add_argument("--kills", type=int, default=2, metavar="N", help="of the client, while the broker is away [2]")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    args = parser.parse_args(argv)
    try:
        found = measure(args.seconds, args.rate, args.kills)
    except BenchFault as fault:
        print(f"bench: {fault}", file=sys.stderr)
        return FAILED
    for name, value in found.items():
        print(f"{name:45}{value:14,.1f}")
    if args.json is not None:
        args.json.write_text(json.dumps(found, indent=1))
    return OK

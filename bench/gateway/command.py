"""`python -m bench gateway`: what watching costs the shards, REST, the page with a crowd, abuse, and an install."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.connections import BenchFault, allow_files
from bench.gateway.abuse import abuse
from bench.gateway.install import install
from bench.gateway.publish import publish
from bench.gateway.watched import watched

OK, FAILED = 0, 1
PARTS = ("watched", "publish", "crowd", "abuse", "install")
EXAMPLES = """\
examples:
  python -m bench gateway                          all of it: about ten minutes
  python -m bench gateway watched --realtime       the shards and the generator before all else that runs here; root
  python -m bench gateway publish --runs 5         REST: batches of 100
  python -m bench gateway install --wheel FILE     of a wheel that was built before
"""


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench gateway", description=__doc__, epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)} [all]")
    parser.add_argument("--runs", type=int, default=5, metavar="N", help="[5]")
    parser.add_argument("--seconds", type=float, default=2.0, metavar="S", help="of a run, about [2]")
    parser.add_argument("--realtime", action="store_true", help="of `watched` and `abuse`; root")
    parser.add_argument("--wheel", type=Path, metavar="FILE", help="of `install` [built from this clone]")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    args = parser.parse_args(argv)
    if unknown := set(args.parts) - set(PARTS):
        parser.error(f"{', '.join(unknown)}: expected of {', '.join(PARTS)}")
    allow_files()
    measures: dict[str, Callable[[], dict[str, float]]] = {
        "watched": lambda: watched(args.runs, args.seconds, realtime=args.realtime),
        "publish": lambda: publish(args.runs, args.seconds),
        "crowd": lambda: of_crowd(args.runs),
        "abuse": lambda: abuse(args.runs, args.seconds, realtime=args.realtime),
        "install": lambda: install(args.wheel),
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


def of_crowd(runs: int) -> dict[str, float]:
    from bench.gateway.crowd import crowd  # it takes the browser of the tests

    return crowd(runs)

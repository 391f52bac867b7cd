"""`python -m bench grpc`: streamed publish and Subscribe by one Python client, and subscribers beside MQTT."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.connections import BenchFault, allow_files

OK, FAILED, REFUSED = 0, 1, 2
PARTS = ("streams", "beside", "beside-all")
EXAMPLES = """\
examples:
  python -m bench grpc                             all of it
  python -m bench grpc streams --runs 3            one client: publish 64 bytes, subscribe from the begin
  python -m bench grpc beside --realtime           200 subscribers of 200 topics, 5,000 msg/s among them; root
  python -m bench grpc beside-all                  200 subscribers that each get all of it
"""


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench grpc", description=__doc__, epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)} [the first two]")
    parser.add_argument("--runs", type=int, default=5, metavar="N", help="[5]")
    parser.add_argument("--seconds", type=float, default=2.0, metavar="S", help="of a run, about [2]")
    parser.add_argument("--realtime", action="store_true", help="of `beside`; root")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    args = parser.parse_args(argv)
    if unknown := set(args.parts) - set(PARTS):
        parser.error(f"{', '.join(unknown)}: expected of {', '.join(PARTS)}")
    try:
        from bench.grpc.beside import SUBSCRIBERS, beside
        from bench.grpc.streams import streams
    except ImportError as fault:
        print(f'bench: {fault}: pip install "rumq[grpc]"', file=sys.stderr)
        return REFUSED
    allow_files()
    measures: dict[str, Callable[[], dict[str, float]]] = {
        "streams": lambda: streams(args.runs, args.seconds),
        "beside": lambda: beside(args.runs, args.seconds, topics=SUBSCRIBERS, realtime=args.realtime),
        "beside-all": lambda: beside(args.runs, args.seconds, topics=1, realtime=args.realtime),
    }
    found: dict[str, dict[str, float]] = {}
    try:
        for part in args.parts or PARTS[:2]:
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

"""`python -m bench queue`: push and acknowledged consume, durable, ten producers, ten consumers; and with a depth."""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.connections import BenchFault, allow_files
from bench.queue import of_rabbitmq, of_rumq
from bench.queue.result import BATCH, CONSUMERS, PAYLOAD_BYTES, PRODUCERS, Lost, QueueRun

OK, FAILED = 0, 1
PEERS: dict[str, tuple[Callable[[Path, int, int], QueueRun], Callable[[], str]]] = {
    "rumq": (of_rumq.measure, lambda: ""),
    "rabbitmq": (of_rabbitmq.measure, of_rabbitmq.why_not),
}
EXAMPLES = """\
examples:
  python -m bench queue                               both, five times, interleaved
  python -m bench queue --peers rumq --depth 10000000 with ten million messages in it, and without
  python -m bench queue --runs 1 --messages 20000     is anything broken?
"""


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench queue", description=__doc__, epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--peers", default=",".join(PEERS), metavar="NAMES", help=f"[{','.join(PEERS)}]")
    parser.add_argument("--messages", type=int, default=200_000, metavar="N", help="[200,000]")
    parser.add_argument("--depth", type=int, default=0, metavar="N", help="messages in the queue all the while [0]")
    parser.add_argument("--runs", type=int, default=5, metavar="N", help="[5]")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    args = parser.parse_args(argv)
    names = args.peers.split(",")
    if unknown := set(names) - set(PEERS):
        parser.error(f"{', '.join(unknown)}: expected of {', '.join(PEERS)}")
    allow_files()
    for name in [name for name in names if PEERS[name][1]()]:
        print(f"{name} is left out: {PEERS[name][1]()}", flush=True)
        names.remove(name)
    depths = [0, args.depth] if args.depth else [0]
    rates: dict[str, list[float]] = {}
    try:
        for _ in range(args.runs):
            for name in names:
                for depth in depths:
                    with tempfile.TemporaryDirectory(prefix="rumq-bench-queue-") as folder:
                        found = PEERS[name][0](Path(folder), args.messages, depth)
                    rates.setdefault(f"{name}, depth {depth:,}", []).append(found.rate)
    except (BenchFault, Lost) as fault:
        print(f"bench: {fault}", file=sys.stderr)
        return FAILED
    print(f"{PRODUCERS} producers, {CONSUMERS} consumers, {PAYLOAD_BYTES} bytes, {BATCH} at a time; durable; msg/s")
    for name, those in rates.items():
        print(f"  {name:40}{statistics.median(those):14,.0f}   {min(those):,.0f} to {max(those):,.0f}")
    if args.json is not None:
        args.json.write_text(json.dumps(rates, indent=1))
    return OK

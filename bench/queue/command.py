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
from bench.queue import of_rabbitmq, of_rest, of_rumq
from bench.queue.result import BATCH, CONSUMERS, PAYLOAD_BYTES, PRODUCERS, Lost, QueueRun

OK, FAILED = 0, 1
Measure = Callable[[Path, int, int], list[QueueRun]]
PEERS: dict[str, tuple[Measure, Callable[[], str]]] = {
    "rumq": (of_rumq.measure, lambda: ""),
    "rumq-rest": (of_rest.measure, lambda: ""),
    "rabbitmq": (of_rabbitmq.measure, of_rabbitmq.why_not),
}
EXAMPLES = """\
examples:
  python -m bench queue                               all, five times, interleaved
  python -m bench queue --peers rumq --depth 10000000 with ten million messages in it, and without; 2 GB on the disk
  python -m bench queue --runs 1 --messages 20000     is anything broken?
"""


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench queue", description=__doc__, epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--peers", default=",".join(PEERS), metavar="NAMES", help=f"[{','.join(PEERS)}]")
    parser.add_argument("--messages", type=int, default=200_000, metavar="N", help="[200,000]")
    parser.add_argument(
        "--depth", type=int, default=0, metavar="N", help="rumq: also with so many in it [0]; RabbitMQ: push them first"
    )
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
    runs: dict[str, list[QueueRun]] = {}
    try:
        for _ in range(args.runs):
            for name in names:
                with tempfile.TemporaryDirectory(prefix="rumq-bench-queue-") as folder:
                    for found in PEERS[name][0](Path(folder), args.messages, args.depth):
                        runs.setdefault(f"{name}, {found.name}", []).append(found)
    except (BenchFault, Lost) as fault:
        print(f"bench: {fault}", file=sys.stderr)
        return FAILED
    print(
        f"{PRODUCERS} producers, {CONSUMERS} consumers, {PAYLOAD_BYTES} bytes, {BATCH} at a time; durable; msg/s, and"
    )
    print("processor seconds of 1,000 messages by process, medians; of `rumq` the door is in that of the load")
    for name, those in runs.items():
        rates = [each.rate for each in those]
        spent = {of: statistics.median(each.cpu_of_1000(of) for each in those) for of in those[0].cpu_s}
        told = "  ".join(f"{of} {seconds:.4f}" for of, seconds in spent.items())
        print(f"  {name:48}{statistics.median(rates):10,.0f}   {min(rates):,.0f} to {max(rates):,.0f}   {told}")
    if args.json is not None:
        args.json.write_text(
            json.dumps({name: [each.told() for each in those] for name, those in runs.items()}, indent=1)
        )
    return OK

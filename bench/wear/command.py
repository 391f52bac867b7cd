"""`python -m bench wear`: bytes that reach the disk for each lone message, and what it takes of the disk afterwards."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.connections import BenchFault
from bench.peers.peer import version
from bench.suite.report import filesystem
from bench.wear.day import DAY_MESSAGES, Day, day
from bench.wear.lone import PAYLOAD_BYTES, PEERS, Wear, lone_messages
from bench.wear.parts import PARTS

OK, FAILED, REFUSED = 0, 1, 2
WIDTH = 17
MESSAGES, RATE = 600, 10.0
EXAMPLES = """\
examples:
  python -m bench wear                             a minute for each broker: rumq, and mosquitto where it is installed
  python -m bench wear --rate 100 --count 1000     quicker; above 20 a second no mark is written between two
  python -m bench wear --day                       864,000 messages through a shard whose clock is a number: minutes
"""


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench wear", description=__doc__, epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    add = parser.add_argument
    add("--rate", type=float, default=RATE, metavar="N", help=f"messages a second [{RATE:.0f}]")
    add("--count", type=int, metavar="N", help=f"of messages [{MESSAGES}; with --day {DAY_MESSAGES}]")
    add("--peers", default=",".join(PEERS), metavar="A,B", help=f"of {', '.join(PEERS)} [all that are installed]")
    add("--day", action="store_true", help="compute a day instead, in one process and without waiting for the disk")
    add("--json", type=Path, metavar="FILE", help="write the figures there")
    args = parser.parse_args(argv)
    names = args.peers.split(",")
    if unknown := set(names) - set(PEERS):
        parser.error(f"{', '.join(unknown)}: expected of {', '.join(PEERS)}")
    if not 0 < args.rate <= 1000 or (args.count is not None and args.count < 1):
        parser.error("expected a rate above 0 and up to 1000, and a count from 1 on")
    try:
        if args.day:
            figures = compute(args.rate, args.count or DAY_MESSAGES)
        else:
            figures = measure(names, args.rate, args.count or MESSAGES)
    except (BenchFault, OSError) as fault:
        print(f"bench: {fault}", file=sys.stderr)
        return FAILED
    if args.json is not None:
        args.json.write_text(json.dumps(figures, indent=1))
    return OK


def measure(names: Sequence[str], rate: float, count: int) -> dict[str, dict[str, float]]:
    if (kind := filesystem(tempfile.gettempdir())) == "tmpfs":
        raise BenchFault(f"TMPDIR is on {kind}, where nothing is written: set it to a disk")
    found: dict[str, Wear] = {}
    for name in names:
        if version(PEERS[name]) == "not installed":
            print(f"bench: {name} is not installed", file=sys.stderr)
            continue
        print(f"bench: {name}: {count} messages, {count / rate:.0f} s", file=sys.stderr, flush=True)
        found[name] = lone_messages(PEERS[name], rate, count)
    print(
        f"\nLone messages of {PAYLOAD_BYTES} bytes, QoS 1, {rate:g} a second, {count:,} of them; one lasting subscriber"
    )
    print("\n".join(table(found)))
    return {name: wear.figures() for name, wear in found.items()}


def table(found: dict[str, Wear]) -> Iterator[str]:
    yield f"{'bytes a message':32}" + "".join(f"{name:>{WIDTH}}" for name in found)
    for figure in dict.fromkeys(figure for wear in found.values() for figure in wear.figures()):
        values = [wear.figures().get(figure) for wear in found.values()]
        yield f"{figure:32}" + "".join(f"{'' if value is None else f'{value:,.0f}':>{WIDTH}}" for value in values)
    for name, wear in found.items():
        yield f"  {name}: {wear.durability}"


def compute(rate: float, count: int) -> dict[str, dict[str, float]]:
    def tell(number: int) -> None:
        if not number % (10 * (1 + count // 100)) or number % 100_000 == 0:
            print(f"bench: {number:,} of {count:,}", file=sys.stderr, flush=True)

    found = day(rate, count, tell)
    print(
        f"\n{count:,} lone messages of {PAYLOAD_BYTES} bytes, QoS 1, {rate:g} a second, computed: "
        f"{found.seconds / 3600:.1f} hours with durability `disk`"
    )
    print("\n".join(day_table(found)))
    columns = {"written": found.written, "running": found.running, "stopped": found.stopped}
    sizes: dict[str, dict[str, float]] = {name: dict(parts) for name, parts in columns.items()}
    return sizes | {"day": {"messages": count, "seconds": found.seconds, "segments": found.segments}}


def day_table(found: Day) -> Iterator[str]:
    columns = {"written": found.written, "on the disk": found.running, "after a stop": found.stopped}
    yield f"{'MB, and bytes a message':32}" + "".join(f"{name:>{2 * WIDTH}}" for name in columns)
    for part in (*PARTS, "together"):
        sizes = [parts.total() if part == "together" else parts[part] for parts in columns.values()]
        row = "".join(f"{size / 1e6:>{WIDTH},.1f}{size / found.messages:>{WIDTH},.0f}" for size in sizes)
        yield f"{part:32}{row}"
    yield f"  {found.segments} files of the log; payloads are {PAYLOAD_BYTES * found.messages / 1e6:,.1f} MB"

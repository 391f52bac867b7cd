"""`python -m bench isolation`: every neighbour, a table, a JSON file and a picture."""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from bench.connections import BenchFault, allow_files
from bench.isolation.brokers import RumqBeside, build_shim
from bench.isolation.lives import Timeline
from bench.isolation.neighbours import NEIGHBOURS, Neighbour
from bench.isolation.picture import Panel, draw
from bench.isolation.run import Plan, run_beside
from bench.isolation.table import table
from bench.isolation.task import PUBLISHERS, QOS1_PUBLISHERS, RATE
from bench.load.load import Load
from bench.peers import PEERS
from bench.peers.mosquitto import Mosquitto
from bench.peers.peer import Peer, running, version
from bench.suite import report, targets
from bench.suite.scenario import Scenario
from bench.suite.series import Series

OK, FAILED, MISSED, INTERRUPTED = 0, 1, 4, 130
# QoS 1 is among it, which is all that a peer's own settings ask.
LOAD = Load(publishers=PUBLISHERS, subscribers=PUBLISHERS, spread="pairs", qos=1, rate=RATE, latency=True)
FIGURES = ("ratio_p99", "before_p99_us", "during_p99_us", "after_p99_us", "lost", "disconnected")
MEASURED = ("rumq", "mosquitto")
QUICK = Plan(before=1.0, during=1.5, after=1.0)

Timelines = dict[tuple[str, str], list[tuple[float, Timeline]]]


def main(argv: Sequence[str]) -> int:
    args = parser().parse_args(argv)
    allow_files()
    if args.draw:
        drawn = msgspec.json.decode(args.draw.read_bytes())["settings"]["timelines"]
        write_picture(args.picture, msgspec.convert(drawn, dict[str, dict[str, Timeline]]))
        return OK
    try:
        return measure(args)
    except KeyboardInterrupt:
        return INTERRUPTED


def measure(args: argparse.Namespace) -> int:
    neighbours = [sized(NEIGHBOURS[key], args.log_gib) for key in args.neighbour or NEIGHBOURS]
    plan = QUICK if args.quick else Plan(during=args.seconds)
    series = Series([scenario_of(one) for one in neighbours], list(args.peers))
    timelines: Timelines = {}
    with tempfile.TemporaryDirectory(prefix="bench-isolation-") as folder:
        for number in range(args.runs):
            for neighbour in neighbours:
                for peer in args.peers:
                    which = f"{number + 1}/{args.runs}"
                    one_run(neighbour, peer, plan, args.durability, Path(folder), series, timelines, which)
    judged = [
        targets.judge(target, series.median)
        for target in targets.load()
        if target.scenario in {one.scenario for one in neighbours} and "rumq" in args.peers
    ]
    print(f"\n{table(series)}\n\n{report.targets_table(judged)}\n")
    chosen = {
        neighbour.key: {
            peer: middle(timelines[neighbour.scenario, peer])
            for peer in args.peers
            if (neighbour.scenario, peer) in timelines
        }
        for neighbour in neighbours
    }
    settings: dict[str, object] = {
        "runs": args.runs, "plan": plan, "rate": RATE, "publishers": PUBLISHERS, "qos1_publishers": QOS1_PUBLISHERS,
        "durability": args.durability, "versions": {name: version(PEERS[name]) for name in args.peers},
        "neighbours": {one.key: dict(one.options) for one in neighbours}, "timelines": chosen,
    }  # fmt: skip
    report.write_json(args.json, series, judged, settings)
    write_picture(args.picture, chosen)
    print(f"all figures: {args.json}\nthe picture: {args.picture}")
    if any(cell.faults for cell in series.cells.values()):
        return FAILED
    return MISSED if args.judge and any(one.verdict == "missed" for one in judged) else OK


def one_run(
    neighbour: Neighbour,
    name: str,
    plan: Plan,
    durability: str,
    folder: Path,
    series: Series,
    timelines: Timelines,
    which: str,
) -> None:
    cell = series.cell(neighbour.scenario, name)
    if name not in neighbour.peers:
        cell.why_not = "it has no such thing"
        return
    trigger = folder / "slow-now"
    try:
        library = build_shim(folder) if neighbour.harm == "slow syncs" else None
        peer: Peer = RumqBeside(neighbour, durability, library, trigger) if name == "rumq" else Mosquitto()
        with running(peer, LOAD) as broker:
            figures, timeline = run_beside(neighbour, broker, plan, trigger)
    except (BenchFault, OSError) as fault:
        cell.faults.append(str(fault))
        tell(f"{neighbour.key} {name} run {which}: failed: {fault}")
        return
    cell.runs.append(figures)
    timelines.setdefault((neighbour.scenario, name), []).append((figures["ratio_p99"], timeline))
    tell(
        f"{neighbour.key} {name} run {which}: p99 {figures['before_p99_us']:,.0f} µs before, "
        f"{figures['during_p99_us']:,.0f} during, {figures['after_p99_us']:,.0f} after: {figures['ratio_p99']:.2f} x"
    )


def middle(timelines: list[tuple[float, Timeline]]) -> Timeline:
    """That of the run whose ratio is the median one."""
    wanted = statistics.median_low(ratio for ratio, _ in timelines)
    return next(timeline for ratio, timeline in timelines if ratio == wanted)


def write_picture(path: Path, timelines: dict[str, dict[str, Timeline]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    panels = [Panel(NEIGHBOURS[key].title, lines) for key, lines in timelines.items() if lines]
    path.write_text(draw(panels))


def scenario_of(neighbour: Neighbour) -> Scenario:
    return Scenario(neighbour.scenario, neighbour.title, LOAD, FIGURES)


def sized(neighbour: Neighbour, log_gib: float) -> Neighbour:
    """With a log of the size that was asked for."""
    if "log_bytes" not in neighbour.options:
        return neighbour
    options = {**neighbour.options, "log_bytes": log_gib * 2**30}
    return replace(neighbour, options=options)


def tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="python -m bench isolation", description="Is anybody slowed by a neighbour that misbehaves?"
    )
    add = made.add_argument
    add("--neighbour", action="append", choices=list(NEIGHBOURS), metavar="NAME",
        help=f"may be repeated [all: {', '.join(NEIGHBOURS)}]")  # fmt: skip
    add("--peers", type=peer_names, default=["rumq"], metavar="A,B", help=f"of {', '.join(MEASURED)} [rumq]")
    add("--runs", type=int, default=1, metavar="N", help="of each neighbour [1]")
    add("--seconds", type=float, default=4.0, metavar="S", help="how long a neighbour misbehaves [4]")
    add("--durability", choices=["process", "disk"], default="process",
        help="rumq's; with disk the others' QoS 1 also shows what a busy machine's disk does [process]")  # fmt: skip
    add("--quick", action="store_true", help="four seconds each: is anything broken?")
    add("--log-gib", type=float, default=1.0, metavar="GIB", help="the log that is replayed or read [1]")
    add("--draw", type=Path, metavar="JSON", help="only draw the picture again, from this file")
    add(
        "--picture",
        type=Path,
        metavar="SVG",
        default=Path("bench-results/isolation.svg"),
        help="[%(default)s]",
    )
    default = Path("bench-results") / time.strftime("%Y%m%d-%H%M%S-isolation.json")
    add("--json", type=Path, metavar="FILE", default=default, help="[bench-results/<time>-isolation.json]")
    add("--judge", action="store_true", help="exit with 4 when a target is missed")
    return made


def peer_names(text: str) -> list[str]:
    names = text.split(",")
    if unknown := [name for name in names if name not in MEASURED]:
        raise argparse.ArgumentTypeError(f"{unknown[0]}: expected of {', '.join(MEASURED)}")
    return names

"""`python -m bench compare`: rumq beside mosquitto, NATS and RabbitMQ, in one report, for an unattended half hour.

Writes report.html (one file), report.md with charts/, and figures.json into --out. Brokers that are not installed are
left out, with a line that says so. With --before another version of rumq is measured in the same run, so that one table
has the figures before and after a change."""

import argparse
import shlex
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from bench.compare.document import Chart, Facts, Part, document
from bench.compare.kept import kept
from bench.compare.rendering import CHARTS, html_page, markdown
from bench.connections import allow_files
from bench.load.load import Load
from bench.peers import PEERS
from bench.peers.peer import Peer, version
from bench.peers.rumq import RumqBefore
from bench.suite import report
from bench.suite.scenario import Scenario
from bench.suite.scenarios import SCENARIOS
from bench.suite.series import run_series

OK, FAILED, REFUSED = 0, 1, 2
COMPARED = ("rumq", "mosquitto", "nats", "rabbitmq")
# With the defaults about half an hour on two cores.
KEYS = (
    "one-to-one-qos0", "ten-to-ten-qos0", "fan-out-qos0", "thousand-topics-qos0", "ten-to-ten-qos1", "fan-out-qos1",
    "ten-to-ten-qos2", "one-at-a-time", "one-at-a-time-process", "pairs-50", "pairs-50-even", "pairs-500",
    "pairs-500-even", "fan-in-10000", "idle-connections", "start",
)  # fmt: skip
ANY_LOAD = Load(publishers=1, subscribers=1)
NOT_INSTALLED = "not installed"
NAME_OF_VERSION = "rumq"  # in what `rumqd --version` prints


def main(arguments: Sequence[str]) -> int:
    args = parser().parse_args(arguments)
    names, known = args.peers.split(","), dict(PEERS)
    if args.before is not None:
        before = RumqBefore(args.before)
        if not args.before.is_file() or NAME_OF_VERSION not in version(before):
            print(
                f"bench: --before {args.before}: expected the interpreter of an environment with rumq", file=sys.stderr
            )
            return REFUSED
        known[before.name] = before
        names.insert(1, before.name)
    if unknown := [name for name in [*names, *args.scenario] if name not in (*known, *SCENARIOS)]:
        print(f"bench: {unknown[0]}: expected of {', '.join(PEERS)}; scenarios as in `list`", file=sys.stderr)
        return REFUSED
    allow_files()
    versions = {name: version(known[name]) for name in names}
    peers = [known[name] for name in names if versions[name] != NOT_INSTALLED and not known[name].why_not(ANY_LOAD)]
    if not peers or peers[0].name != names[0]:
        print(f"bench: {names[0]}: {versions[names[0]]}", file=sys.stderr)
        return REFUSED
    scenarios = [SCENARIOS[key] for key in args.scenario or KEYS]
    began = time.monotonic()
    parts, failed = measure(args, peers, scenarios, versions)
    write(args.out, parts)
    print(f"{args.out / 'report.html'} and report.md, after {(time.monotonic() - began) / 60:.0f} minutes")
    return FAILED if failed else OK


def measure(
    args: argparse.Namespace, peers: Sequence[Peer], scenarios: Sequence[Scenario], versions: dict[str, str]
) -> tuple[list[Part], bool]:
    """The report, and whether a run came to nothing. Writes all figures."""

    def tell(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    losses = []
    for peer in peers:
        losses.append(kept(peer))
        tell(f"kill -9 {peer.name}: {losses[-1]}")
    series = run_series(scenarios, peers, runs=args.runs, seconds=args.seconds, tell=tell)
    facts = Facts(
        command="python -m bench compare " + shlex.join(sys.argv[2:]),
        machine=report.machine(), versions=versions, runs=args.runs, seconds=args.seconds,
        commands={peer.name: shlex.join(peer.command(ANY_LOAD, nowhere(args.out, peer), 1883)) for peer in peers},
    )  # fmt: skip
    settings: dict[str, object] = {"runs": args.runs, "seconds": args.seconds, "versions": versions, "kept": losses}
    report.write_json(args.out / "figures.json", series, [], settings)
    return document(series, losses, facts), any(cell.faults for cell in series.cells.values())


def nowhere(out: Path, peer: Peer) -> Path:
    """Where a peer writes the settings that the report names: they are part of it."""
    folder = out / "settings" / peer.name
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def write(out: Path, parts: Sequence[Part]) -> None:
    (out / CHARTS).mkdir(parents=True, exist_ok=True)
    (out / "report.html").write_text(html_page(parts))
    (out / "report.md").write_text(markdown(parts))
    for part in parts:
        if isinstance(part, Chart):
            (out / CHARTS / f"{part.name}.svg").write_text(part.svg)


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m bench compare", description=__doc__)
    add = made.add_argument
    add("--out", type=Path, default=Path("bench-results/compare"), metavar="DIR", help="[bench-results/compare]")
    add("--peers", default=",".join(COMPARED), metavar="A,B", help=f"[{','.join(COMPARED)}]")
    add(
        "--before", type=Path, metavar="PYTHON",
        help="the interpreter of an environment with another rumq, such as old/.venv/bin/python: measured too",
    )  # fmt: skip
    add("--scenario", action="append", default=[], metavar="NAME", help="may be repeated [those of the report]")
    add("--runs", type=int, default=3, metavar="N", help="of each load against each broker [3]")
    add("--seconds", type=float, default=2.0, metavar="S", help="how long a measured run takes about [2]")
    return made

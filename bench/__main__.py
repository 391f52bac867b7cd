"""`python -m bench`: arguments and wiring."""

import argparse
import dataclasses
import os
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

import msgspec

import rumq
from bench import doors, limit
from bench.bridge import command as bridge
from bench.cluster import command as cluster
from bench.compare import command as report_command
from bench.connections import Address, BenchFault, allow_files
from bench.cost import command as cost
from bench.gateway import command as gateway
from bench.grpc import command as grpc
from bench.isolation import command as isolation
from bench.kafka import command as kafka
from bench.outbox import command as outbox
from bench.peers import DEFAULT, PEERS
from bench.peers.peer import version
from bench.profile import command as profile
from bench.queue import command as queue
from bench.secure import CAFILE
from bench.suite import report, targets
from bench.suite.scenario import Scenario
from bench.suite.scenarios import SCENARIOS
from bench.suite.series import Attached, run_series
from bench.wear import command as wear
from rumq.version import COMPILED, kernels

OK, FAILED, REFUSED, MISSED, INTERRUPTED = 0, 1, 2, 4, 130
QUICK_RUNS, QUICK_S = 1, 1.0

EXAMPLES = """\
examples:
  python -m bench --quick                                 everything once, a second each: is anything broken?
  python -m bench                                         everything five times, three seconds each: figures
  python -m bench --scenario one-to-one-qos0 --peers rumq,nats --runs 3
  python -m bench --broker-address localhost:1883 --pid 4711
  python -m bench --broker-address localhost:8883 --tls ca.pem
  python -m bench compare                                 one report beside three brokers, in half an hour. --help
  python -m bench list                                    the scenarios and the peers
  python -m bench limit                                   what the generator itself can do
  python -m bench doors                                   what TLS handshakes and rules cost. --help
  python -m bench spark DIR                               the log as a table: rows a second. Needs the spark extra
  python -m bench profile pairs-500                       where the broker's time goes: a flame graph. --help
  python -m bench cost                                    what a message costs: instructions and CPU. --help
  python -m bench isolation                               is anybody slowed by a neighbour? --help
  python -m bench cluster                                 what three copies cost. Needs etcd. --help
  python -m bench queue                                   push and acknowledged consume, beside RabbitMQ. --help
  python -m bench outbox                                  a client whose broker is away for a minute. --help
  python -m bench gateway                                 the page, REST, scrapes and abuse beside a load. --help
  python -m bench grpc                                    publish and subscribe by gRPC, and beside MQTT. --help
  python -m bench kafka                                   what Kafka's consumers get, and how soon. --help
  python -m bench bridge                                  messages a second between two brokers. --help
  python -m bench wear                                    bytes to the disk for each lone message. --help

exit status: 0 measured; 1 a run failed; 2 arguments refused; 4 a target was missed (with --judge)
How to read a number: bench/README.md
"""


def main(argv: Sequence[str] | None = None) -> int:
    arguments = sys.argv[1:] if argv is None else list(argv)
    if words := uncompiled():
        print(words, file=sys.stderr)
    if arguments[:1] == ["doors"]:
        return doors.main(arguments[1:])
    if arguments[:1] == ["compare"]:
        return report_command.main(arguments[1:])
    if arguments[:1] == ["bridge"]:
        return bridge.main(arguments[1:])
    if arguments[:1] == ["cost"]:
        return cost.main(arguments[1:])
    if arguments[:1] == ["profile"]:
        return profile.main(arguments[1:])
    if arguments[:1] == ["cluster"]:
        return cluster.main(arguments[1:])
    if arguments[:1] == ["gateway"]:
        return gateway.main(arguments[1:])
    if arguments[:1] == ["grpc"]:
        return grpc.main(arguments[1:])
    if arguments[:1] == ["kafka"]:
        return kafka.main(arguments[1:])
    if arguments[:1] == ["queue"]:
        return queue.main(arguments[1:])
    if arguments[:1] == ["outbox"]:
        return outbox.main(arguments[1:])
    if arguments[:1] == ["wear"]:
        return wear.main(arguments[1:])
    if arguments[:1] == ["isolation"]:
        return isolation.main(arguments[1:])
    if arguments[:1] == ["spark"]:
        from bench.table import spark

        return spark.main(arguments[1:])
    args = parser().parse_args(arguments)
    if args.tls:
        os.environ[CAFILE] = str(args.tls)
    allow_files()
    if args.realtime:
        try:
            # Round robin, at the lowest such priority; every broker and worker inherits it. sched(7)
            os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
        except PermissionError:
            print("bench: --realtime needs root", file=sys.stderr)
            return REFUSED
    seconds = args.seconds or (QUICK_S if args.quick else 3.0)
    if args.what == "list":
        print(listing())
        return OK
    if args.what == "limit":
        try:
            limit.run_limit(seconds)
        except (BenchFault, OSError) as fault:
            print(f"bench: {fault}", file=sys.stderr)
            return FAILED
        return OK
    try:
        return compare(args, seconds)
    except KeyboardInterrupt:
        return INTERRUPTED


def uncompiled() -> str:
    """What to say where what is measured here would not be what is installed; empty where it would."""
    found = kernels()
    if found == COMPILED and limit.compiled():
        return ""
    folder = Path(rumq.__path__[0]).parent
    return (
        f"bench: NOT COMPILED: what is measured is the rumq of {folder} (kernels: {found}), by a generator that is "
        f"{'compiled' if limit.compiled() else 'Python, too'}: these are no figures of rumq.\n"
        "bench: `pip install .` compiles what it installs, and nothing in the clone: use `pip install -e .` (with gcc)"
    )


def compare(args: argparse.Namespace, seconds: float) -> int:
    if (kind := report.filesystem(tempfile.gettempdir())) == "tmpfs":
        print(f"bench: TMPDIR is on {kind}: QoS 1 and 2 are measured without a disk", file=sys.stderr)
    attached = Attached(args.broker_address, args.pid) if args.broker_address else None
    peers = [PEERS[name] for name in (args.peers[:1] if attached else args.peers)]
    scenarios = [with_lead(SCENARIOS[key], args.lead) for key in args.scenario or SCENARIOS]
    runs = args.runs or (QUICK_RUNS if args.quick else 5)
    versions = {} if attached else {peer.name: version(peer) for peer in peers}
    for name, line in versions.items():
        print(f"{name}: {line}")
    series = run_series(
        scenarios, peers, runs=runs, seconds=seconds, workers=args.workers, attached=attached,
        tell=lambda line: print(line, file=sys.stderr, flush=True),
    )  # fmt: skip
    judged = [
        targets.judge(target, series.median)
        for target in targets.load()
        if target.scenario in {scenario.key for scenario in scenarios} and "rumq" in series.peers
    ]
    print(f"\n{report.table(series)}\n")
    if judged:
        print(report.targets_table(judged))
    settings: dict[str, object] = {
        "runs": runs, "seconds": seconds, "versions": versions, "workers": args.workers, "realtime": args.realtime,
        "loads": {scenario.key: scenario.load for scenario in scenarios},
    }  # fmt: skip
    report.write_json(args.json, series, judged, settings)
    print(f"all figures: {args.json}")
    if any(cell.faults for cell in series.cells.values()):
        return FAILED
    return MISSED if args.judge and any(one.verdict == "missed" for one in judged) else OK


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="python -m bench", description="Measure MQTT brokers side by side.", epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    add = made.add_argument
    add("what", nargs="?", choices=["run", "list", "limit"], default="run", help="[run]")
    add("--quick", action="store_true", help="one run of a second each")
    add("--scenario", action="append", choices=list(SCENARIOS), metavar="NAME", help="may be repeated [all]")
    add("--peers", type=peer_names, default=list(DEFAULT), metavar="A,B", help=f"[{','.join(DEFAULT)}]")
    add("--runs", type=at_least_one, metavar="N", help="of each scenario against each peer [5]")
    add("--seconds", type=positive, metavar="S", help="how long a measured run takes about [3]")
    add("--workers", type=worker_counts, default=(1, 1), metavar="P,S", help="processes of each role [1,1]")
    add("--broker-address", type=address, metavar="HOST:PORT", help="one that runs already, as the first peer")
    add("--lead", type=at_least_one, metavar="N", help="messages in flight at most [as `list` shows]")
    add("--tls", type=Path, metavar="CAFILE", help="with --broker-address: over TLS, by this authority")
    add("--realtime", action="store_true", help="brokers and generator before all else that runs here; root")
    add("--pid", type=at_least_one, help="its process, for CPU time and memory")
    add("--judge", action="store_true", help="exit with 4 when a target is missed")
    add("--json", type=Path, metavar="FILE", default=default_json(), help="[bench-results/<time>.json]")
    return made


def with_lead(scenario: Scenario, lead: int | None) -> Scenario:
    if lead is None:
        return scenario
    return dataclasses.replace(scenario, load=msgspec.structs.replace(scenario.load, lead=lead))


def default_json() -> Path:
    return Path("bench-results") / time.strftime("%Y%m%d-%H%M%S.json")


def listing() -> str:
    lines = [
        f"{scenario.key:28}{scenario.title:40}"
        + (
            f"lead {scenario.load.lead:,}"
            if scenario.kind == "traffic" and not (scenario.load.rate or scenario.load.alone)
            else ""
        )
        for scenario in SCENARIOS.values()
    ]
    return "\n".join([*lines, "", f"peers: {', '.join(PEERS)}"])


def peer_names(text: str) -> list[str]:
    names = text.split(",")
    if unknown := [name for name in names if name not in PEERS]:
        raise argparse.ArgumentTypeError(f"{unknown[0]}: expected of {', '.join(PEERS)}")
    return names


def address(text: str) -> Address:
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdecimal():
        raise argparse.ArgumentTypeError(f"{text}: expected host:port")
    return host, int(port)


def worker_counts(text: str) -> tuple[int, int]:
    counts = [at_least_one(part) for part in text.split(",")]
    if len(counts) != 2:
        raise argparse.ArgumentTypeError(f"{text}: expected two numbers, such as 1,2")
    return counts[0], counts[1]


def at_least_one(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text}: expected a whole number from 1 on")
    return int(text)


def positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 3600:
        raise argparse.ArgumentTypeError(f"{text}: expected seconds")
    return value


def interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    # As by Ctrl-C: a bench that somebody ends, as timeout(1) does, leaves no broker behind.
    signal.signal(signal.SIGTERM, interrupt)
    sys.exit(main())

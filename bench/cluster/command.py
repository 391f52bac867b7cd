"""`python -m bench cluster`: three copies against one, one follower paused, one node gone, clients relayed against
local ones, an idle node, and replays at a node that follows."""

import argparse
import contextlib
import json
import os
import signal
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from bench.cluster.idle import idle
from bench.cluster.replays import replays
from bench.cluster.running import Members, Node, running_cluster
from bench.connections import Address, BenchFault, allow_files
from bench.load.load import Load
from bench.measure.figures import Figures
from bench.measure.measure import measure
from bench.peers import PEERS
from bench.peers.peer import Broker
from bench.process import cpu_s, tree
from bench.suite.scenario import Scenario
from bench.suite.scenarios import SCENARIOS
from bench.suite.series import run_series

OK, FAILED = 0, 1
PARTS = ("copies", "paused", "away", "relayed", "idle", "replays", "steady")
STEADY = Load(publishers=10, subscribers=10, spread="pairs", qos=1, rate=1_000, phase="even", latency=True)
PACED = Load(publishers=10, subscribers=10, spread="pairs", qos=1, window=100, rate=2_000)
EXAMPLES = """\
examples:
  python -m bench cluster                        all of it: about three minutes
  python -m bench cluster idle --seconds 20      memory, CPU and wake-ups of a node without clients, for a minute
  python -m bench cluster steady --runs 1 --seconds 600   ten minutes of 1,000 messages a second
  python -m bench cluster paused --runs 5        p99 of acknowledgements with a follower paused
"""
FIGURE_WORDS = {
    "copies": "QoS 1, 10:10, window 100: messages a second; and PUBACK of one message at a time",
    "paused": "PUBACK of one message at a time, one follower paused against none: p99",
    "away": "one of three nodes killed against none: messages a second at QoS 1, 10:10; p99 of one PUBACK at a time",
    "idle": "three nodes with three shards and no clients: each node with all its processes, without etcd",
    "relayed": "2,000 messages a second at QoS 1, clients at a follower's node against the leader's: CPU of all nodes",
    "steady": "1,000 messages a second at QoS 1 over ten topics, three nodes, clients at one that follows",
    "replays": "200,000 records of a partition that another node leads, by a client at home at this one",
}


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench cluster", description=__doc__, epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)} [all]")
    parser.add_argument("--runs", type=int, default=3, metavar="N", help="[3]")
    parser.add_argument("--seconds", type=float, default=3.0, metavar="S", help="of a run, about [3]")
    parser.add_argument("--peers", default="rumq,rumq-cluster,mosquitto", metavar="A,B", help="of `copies`")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    args = parser.parse_args(argv)
    if unknown := set(args.parts) - set(PARTS):
        parser.error(f"{', '.join(unknown)}: expected of {', '.join(PARTS)}")
    allow_files()
    found: dict[str, Figures] = {}
    try:
        for part in args.parts or PARTS:
            print(f"{part}: {FIGURE_WORDS[part]}", flush=True)
            if part == "copies":
                found[part] = copies(args.peers.split(","), args.runs, args.seconds)
            else:
                parts = {
                    "paused": paused,
                    "away": away,
                    "relayed": relayed,
                    "idle": standing,
                    "replays": replays,
                    "steady": steady,
                }
                found[part] = parts[part](args.runs, args.seconds)
            for name, value in found[part].items():
                print(f"  {name:44}{value:12,.3f}", flush=True)
    except BenchFault as fault:
        print(f"bench: {fault}", file=sys.stderr)
        return FAILED
    if args.json is not None:
        args.json.write_text(json.dumps(found, indent=1))
    return OK


def copies(names: Sequence[str], runs: int, seconds: float) -> Figures:
    """Rates of `ten-to-ten-qos1` and latency of `one-at-a-time`, and ratios to the first of the peers."""
    peers = [PEERS[name] for name in names]
    wanted = [("ten-to-ten-qos1", "delivered_per_s"), ("one-at-a-time", "acknowledged_p50_us")]
    series = run_series(
        [SCENARIOS[key] for key, _ in wanted], peers, runs=runs, seconds=seconds,
        tell=lambda line: print(f"  {line}", file=sys.stderr, flush=True),
    )  # fmt: skip
    figures = {
        f"{key} {peer.name} {figure}": series.median(key, peer.name, figure) for key, figure in wanted for peer in peers
    }
    for peer in peers:
        if peer.name != "rumq-cluster":
            rates = [series.median("ten-to-ten-qos1", name, "delivered_per_s") for name in ("rumq-cluster", peer.name)]
            figures[f"throughput, three copies / {peer.name}"] = rates[0] / rates[1]
    latency = [series.median("one-at-a-time", name, "acknowledged_p50_us") for name in ("rumq-cluster", "rumq")]
    return figures | {"p50 of PUBACK, three copies - one, ms": (latency[0] - latency[1]) / 1000}


def paused(runs: int, seconds: float) -> Figures:
    """A round with all nodes and one with a follower stopped, in turn."""
    alone = SCENARIOS["one-at-a-time"]
    before: list[float] = []
    meanwhile: list[float] = []
    with running_cluster("--restart-seconds", "3600") as members:
        for _ in range(runs):
            leader = members.leader()
            before.append(at(alone, leader, members, seconds)["acknowledged_p99_us"])
            with stopped(members.other()):
                meanwhile.append(at(alone, leader, members, seconds)["acknowledged_p99_us"])
    return ratio("p99 of PUBACK, us", "all nodes", before, "one follower paused", meanwhile)


def away(runs: int, seconds: float) -> Figures:
    """All rounds with three nodes, then all with two: a follower is killed in between, and stays dead."""
    crowd, alone = SCENARIOS["ten-to-ten-qos1"], SCENARIOS["one-at-a-time"]
    rates: list[list[float]] = [[], []]
    latencies: list[list[float]] = [[], []]
    with running_cluster("--restart-seconds", "3600") as members:
        leader, other = members.leader(), members.other()
        for rate, latency in zip(rates, latencies, strict=True):
            for _ in range(runs):
                rate.append(at(crowd, leader, members, seconds)["delivered_per_s"])
                latency.append(at(alone, leader, members, seconds)["acknowledged_p99_us"])
            if rate is rates[0]:
                for pid in tree(other.pid):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
        if members.leader() != leader:
            raise BenchFault("another node leads now: no follower was killed")
    names = "three nodes", "two of three"
    return ratio("messages a second", names[0], rates[0], names[1], rates[1]) | {
        f"{name}, p99": value
        for name, value in ratio("PUBACK, us", names[0], latencies[0], names[1], latencies[1]).items()
    }


def relayed(runs: int, seconds: float) -> Figures:
    """CPU time of all processes of all nodes for a message, by where its clients are."""
    paced = Scenario("relayed", "10:10 QoS 1 at 2,000 msg/s", PACED)
    local: list[float] = []
    away: list[float] = []
    with running_cluster("--restart-seconds", "3600") as members:
        for _ in range(runs):
            leader = members.leader()
            local.append(cpu_us(paced, leader, members, seconds))
            away.append(cpu_us(paced, members.other(), members, seconds))
    return ratio("CPU us a message", "local", local, "relayed", away)


def steady(runs: int, seconds: float) -> Figures:
    """Of all runs together: what was acknowledged and delivered, and the longest run's latency."""
    scenario = Scenario("steady", "10:10 QoS 1 at 1,000 msg/s", STEADY)
    with running_cluster(shards=3) as members:
        node = members.other()
        found = [at(scenario, node, members, seconds) for _ in range(runs)]
    counted = ("sent", "unacknowledged", "lost", "out_of_order_or_twice")
    longest = max(found, key=lambda each: each["sent"])
    return {name: sum(each[name] for each in found) for name in counted} | {
        name: value for name, value in longest.items() if name.startswith("latency_p")
    }


def standing(runs: int, seconds: float) -> Figures:
    """For as long as all runs together."""
    with running_cluster(shards=3) as members:
        return idle(members.nodes, runs * seconds)


def cpu_us(scenario: Scenario, node: Node, members: Members, seconds: float) -> float:
    spent: list[float] = []

    @contextlib.contextmanager
    def during() -> Iterator[None]:
        before = cpu_of_nodes(members)
        yield
        spent.append(cpu_of_nodes(members) - before)

    figures = at(scenario, node, members, seconds, during)
    return 1e6 * spent[0] / figures["sent"]


def cpu_of_nodes(members: Members) -> float:
    return sum(cpu_s(each.pid) for each in members.nodes)


def at(
    scenario: Scenario, node: Node, members: Members, seconds: float,
    during: Callable[[], contextlib.AbstractContextManager[None]] = contextlib.nullcontext,
) -> Figures:  # fmt: skip
    """One run with all clients at that node."""
    address: Address = node.address
    return measure(scenario, Broker(address, node.pid, 0.0), seconds, during=during)


@contextlib.contextmanager
def stopped(node: Node) -> Iterator[None]:
    """SIGSTOP to all of a node's processes."""
    pids = tree(node.pid)
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def ratio(what: str, name: str, first: Sequence[float], other: str, second: Sequence[float]) -> Figures:
    one, two = statistics.median(first), statistics.median(second)
    return {f"{what}, {name}": one, f"{what}, {other}": two, f"{other} / {name}": two / one}

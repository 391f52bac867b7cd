"""Three etcd and three nodes of one cluster on this machine, on free ports of loopback, until SIGTERM.

python examples/cluster.py [--nodes N] [--shards N] [--data DIR] [--set key=value]

Prints one line of JSON when every node serves: {"nodes": [{"name", "mqtt", "pid", "data", "logs"}], "etcd": [{"client",
"pid", "logs"}]}. What dies is started again on its ports and data, and told in a further line: {"restarted": {...}}.
Tests and the bench use `Cluster` as a library."""

import argparse
import contextlib
import json
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from cluster_members import Member, NotStarted, Place, Ports, ask_etcd, etcd, tree
from round_trip import RoundTripFailed, round_trip

__all__ = ["Cluster", "Member", "NotStarted", "Place", "ask_etcd", "run", "tree"]  # of the library
RUMQD = [sys.executable, "-m", "rumq"]
ETCD_COUNT = 3
REPLICAS_MAX = 3
START_SECONDS_MAX, STOP_SECONDS_MAX = 60.0, 20.0
ETCD_STOP_SECONDS_MAX = 1.5  # the last ones wait long for the others; what they acknowledged is synced


class Cluster:
    """Members in the order of their names. Threads: all calls but reads come from the one that called `start`.

    settings: "key=value" for each node; place: where a member of that name runs; held: names of members that stay
    dead when they die"""

    def __init__(
        self,
        data: Path,
        nodes: int = 3,
        shards: int = 0,
        *,
        settings: Sequence[str] = (),
        etcd_settings: Sequence[str] = (),
        mqtt_port: int = 0,
        restart_seconds: float = 2.0,
        place: Callable[[str], Place] = lambda name: Place(),
    ) -> None:
        self.data, self.shards, self.restart_seconds = data, shards or nodes, restart_seconds
        self.replicas = min(REPLICAS_MAX, nodes)
        self.held: set[str] = set()
        data.mkdir(parents=True, exist_ok=True)
        names = [f"n{number + 1}" for number in range(nodes)]
        etcds = [f"etcd{number + 1}" for number in range(ETCD_COUNT)]
        ports = Ports(data / "ports.json", dict.fromkeys(names, 3 + self.shards) | dict.fromkeys(etcds, 2))
        if mqtt_port:
            ports.numbers["mqtt " + names[0]] = mqtt_port
        self.etcds = [etcd(name, etcds, ports, data, place, etcd_settings) for name in etcds]
        self.nodes = [self._node(name, ports, place, settings) for name in names]

    def _node(self, name: str, ports: "Ports", place: Callable[[str], Place], settings: Sequence[str]) -> Member:
        own = place(name)
        first = ports.numbers[name]
        mqtt = ports.numbers.get("mqtt " + name, first)
        keys = {
            "cluster.name": "demo", "cluster.node": name, "cluster.host": own.host, "cluster.port": first + 1,
            "cluster.etcd": json.dumps([each.address for each in self.etcds]),
            "cluster.shards": self.shards, "cluster.replicas": self.replicas,
        }  # fmt: skip
        flags = [f"{key}={value}" for key, value in keys.items()] + list(settings)
        command = [*own.before, *RUMQD, "run", "--data", str(self.data / name), "--host", own.host]
        command += ["--port", str(mqtt), *(part for flag in flags for part in ("--set", flag))]
        return Member(name, command, f"{own.host}:{mqtt}", self.data / name)

    @property
    def members(self) -> list[Member]:
        return [*self.etcds, *self.nodes]

    def member(self, name: str) -> Member:
        return next(each for each in self.members if each.name == name)

    def start(self) -> None:
        """Return once every node serves. raises: NotStarted"""
        until = time.monotonic() + START_SECONDS_MAX
        for each in self.etcds:
            each.start()
        self._wait("etcd", until, lambda: self.etcd_leader() is not None)
        for each in self.nodes:
            each.start()
        for number in range(len(self.nodes)):
            for shard in range(self.shards):
                self._wait(f"a round trip through n{number + 1}", until, lambda n=number, s=shard: self.serves(n, s))

    def _wait(self, what: str, until: float, is_it: Callable[[], bool]) -> None:
        while not is_it():
            dead = next((each for each in self.members if each.died_at is None and each.has_ended), None)
            if dead is not None:
                raise NotStarted(f"{dead.name} has ended: {dead.last_words()}")
            if time.monotonic() > until:
                words = "\n".join(
                    f"{each.name}: {each.last_words()[-600:]}" for each in self.nodes if each.logs.exists()
                )
                raise NotStarted(f"{what}: not within {START_SECONDS_MAX:g} s\n{words}")
            time.sleep(0.05)

    def serves(self, number: int, shard: int, seconds: float = 5.0) -> bool:
        """A client of that shard gets what it publishes to a partition of that shard, through that node."""
        host, port = self.nodes[number].address.split(":")
        try:
            round_trip((host, int(port)), f"ready-{number}", shard, self.shards, seconds)
        except (RoundTripFailed, OSError):
            return False
        return True

    def etcd_leader(self) -> Member | None:
        """The etcd that leads; None while there is none."""
        for each in self.etcds:
            status = ask_etcd(each.address, "/v3/maintenance/status")
            if status and status.get("leader") == status["header"].get("member_id"):
                return each
        return None

    def restart_dead(self, now: float) -> list[Member]:
        """Start those that have been dead for so long, and return them. now: monotonic seconds"""
        started = []
        for each in self.members:
            if each.is_alive:
                continue
            each.died_at = now if each.died_at is None else each.died_at
            if each.name not in self.held and now - each.died_at >= self.restart_seconds:
                each.start()
                started.append(each)
        return started

    def stop(self) -> None:
        """Nodes first: they want to tell etcd that they go."""
        for group, seconds in ((self.nodes, STOP_SECONDS_MAX), (self.etcds, ETCD_STOP_SECONDS_MAX)):
            until = time.monotonic() + seconds
            for each in group:
                each.stop(signal.SIGCONT)
                each.stop()
            for each in group:
                each.end(until)

    def told(self, member: Member) -> dict[str, Any]:
        entry = {"pid": member.pid, "logs": str(member.logs)}
        if member in self.etcds:
            return {"client": member.address} | entry
        return {"name": member.name, "mqtt": member.address} | entry | {"data": str(member.data)}


def run(cluster: Cluster, stopping: threading.Event, tell: Callable[[dict[str, Any]], None]) -> None:
    """Start it, tell of it, and keep it alive until `stopping`. raises: NotStarted"""
    try:
        cluster.start()
        tell({
            "nodes": [cluster.told(each) for each in cluster.nodes],
            "etcd": [cluster.told(each) for each in cluster.etcds],
        })  # fmt: skip
        while not stopping.wait(0.05):
            for each in cluster.restart_dead(time.monotonic()):
                tell({"restarted": cluster.told(each)})
    finally:
        cluster.stop()


@contextlib.contextmanager
def data_directory(named: str | None) -> Iterator[Path]:
    if named is not None:
        yield Path(named).resolve()
        return
    with tempfile.TemporaryDirectory(prefix="rumq-cluster-") as folder:
        yield Path(folder)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=3, metavar="N", help="[3]")
    parser.add_argument("--shards", type=int, default=0, metavar="N", help="[as many as nodes]")
    parser.add_argument("--data", metavar="DIR", help="keep everything here, ports too [temporary, removed at the end]")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a setting of each node")
    parser.add_argument(
        "--restart-seconds", type=float, default=2.0, metavar="S", help="how long the dead stay dead [2]"
    )
    parser.add_argument("--mqtt-port", type=int, default=0, metavar="P", help="of the first node [a free one]")
    parser.add_argument("--etcd-heartbeat-ms", type=int, default=100, metavar="MS", help="[100, etcd's default]")
    parser.add_argument("--etcd-election-ms", type=int, default=1000, metavar="MS", help="[1000, etcd's default]")
    args = parser.parse_args()
    stopping = threading.Event()

    def stop(number: int, frame: object) -> None:
        if stopping.is_set():
            return
        stopping.set()
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    timers = [f"--heartbeat-interval={args.etcd_heartbeat_ms}", f"--election-timeout={args.etcd_election_ms}"]
    with data_directory(args.data) as data, contextlib.suppress(KeyboardInterrupt):
        try:
            cluster = Cluster(
                data, args.nodes, args.shards, settings=args.set, etcd_settings=timers, mqtt_port=args.mqtt_port,
                restart_seconds=args.restart_seconds,
            )  # fmt: skip
            run(cluster, stopping, lambda entry: print(json.dumps(entry), flush=True))
        except NotStarted as fault:
            print(f"cluster: {fault}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

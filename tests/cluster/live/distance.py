"""What distance costs an acknowledgement: `python -m tests.cluster.live.distance --round-trip-ms 0 20 80`. Needs root.

Three nodes and three etcd in namespaces whose packets to each other are delayed; the client is beside the node that it
publishes to, one message of QoS 1 at a time; its home and its topic's partition are of one shard. It is a real-time
process: its own wait for a core is no part of what is measured."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from examples.cluster import Member
from rumq.net.client_placement import home_of
from tests.cluster.live.cluster import LiveCluster, address_of
from tests.cluster.live.gaps import quantile
from tests.cluster.live.network import Network
from tests.cluster.live.run import delays_of
from tests.conformance.peer import Peer

NODES = 3
SHARD = 0
ONE_PARTITION = ['stream=[{name="main", filters=["#"], partitions=1}]']  # of shard 0
WARM_UP = 20
SERVES_SECONDS = 30.0


def acknowledgements(node: Member, shards: int, count: int) -> list[float]:
    """Seconds from each PUBLISH to its PUBACK."""
    found = []
    client_id = next(each for each in map("far-{}".format, range(1000)) if home_of(each, shards) == SHARD)
    with Peer(address_of(node)) as client:
        client.connect(client_id)
        for number in range(WARM_UP + count):
            began = time.monotonic()
            code = client.publish("far/away", b"%d" % number, 1)
            assert code is not None and code < 0x80, code
            found.append(time.monotonic() - began)
        client.leave()
    return found[WARM_UP:]


def measured(round_trip_s: float, count: int) -> dict[str, list[float]]:
    """At the node that leads the shard, and at another one."""
    with ExitStack() as ending:
        folder = Path(ending.enter_context(tempfile.TemporaryDirectory(prefix="rumq-distance-")))
        names = [f"{kind}{number + 1}" for kind in ("n", "etcd") for number in range(NODES)]
        network = Network(names)
        live = LiveCluster(folder, nodes=NODES, network=network, settings=ONE_PARTITION)
        ending.callback(live.remove)
        ending.callback(network.remove)
        network.make()
        if round_trip_s:
            network.delay(delays_of(names, round_trip_s))
        ending.callback(live.stop)
        live.start()
        assert not (faults := live.all_serve(SERVES_SECONDS)), faults
        name = live.shard_records()[SHARD]["leader"].partition("#")[0]
        leader = next(each for each in live.nodes if each.name == name)
        other = next(each for each in live.nodes if each is not leader)
        shards = live.cluster.shards
        return {
            "the leader's node": acknowledgements(leader, shards, count),
            "another node": acknowledgements(other, shards, count),
        }


def shown(seconds: Sequence[float]) -> str:
    ordered = sorted(seconds)
    at = [1000 * quantile(ordered, share) for share in (0.5, 0.99, 1.0)]
    return f"p50 {at[0]:6.1f} ms   p99 {at[1]:6.1f} ms   worst {at[2]:6.1f} ms   ({len(seconds)})"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--round-trip-ms", type=float, nargs="+", default=[0.0, 20.0, 80.0], metavar="MS")
    parser.add_argument("--messages", type=int, default=500, help="at each node [%(default)s]")
    args = parser.parse_args()
    if why := Network.why_not():
        parser.error(why)
    os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(1))
    for each in args.round_trip_ms:
        for where, found in measured(each / 1000, args.messages).items():
            print(f"{each:5.0f} ms, {where:17}  {shown(found)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

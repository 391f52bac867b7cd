"""`python -m bench.cluster.scaling`: messages a second of a cluster by nodes, computed from what a message costs.

Assumptions: each node has one core, and its disks and network are not the limit; shards, clients and topics are spread
evenly; a client's home, the topic's partition and the subscriber's home are independent of each other and of the node
that the client came to; QoS 1, one subscriber for each message. Then every core has the same work, and the rate is the
number of cores by the work of a message."""

import argparse
import sys
from collections.abc import Sequence
from typing import NamedTuple

CROSSINGS = 2  # of a message: to its partition's shard, and on to its subscriber's


class Costs(NamedTuple):
    """CPU µs of a message, taken in and delivered. alone: of one node without copies; leader, follower: of the shard's
    processes; relay: of the edge of a node that leads another shard, both ways; crossing: between two shards"""

    alone: float = 1.6
    leader: float = 1.95
    follower: float = 0.70
    relay: float = 0.54
    crossing: float = 0.2


class Point(NamedTuple):
    """Of one size of the cluster. us: CPU of a message, of all nodes; rate: messages a second
    copies, ways: shares of the work, which are those of followers, and of relays and crossings"""

    nodes: int
    us: float
    rate: float
    copies: float
    ways: float


def point(costs: Costs, nodes: int, replicas: int = 3) -> Point:
    if nodes == 1:
        return Point(1, costs.alone, 1e6 / costs.alone, 0.0, 0.0)
    copies = (min(replicas, nodes) - 1) * costs.follower
    ways = (1 - 1 / nodes) * (costs.relay + CROSSINGS * costs.crossing)
    us = costs.leader + copies + ways
    return Point(nodes, us, nodes * 1e6 / us, copies / us, ways / us)


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench.cluster.scaling", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--nodes", type=int, nargs="+", default=[1, 3, 5], metavar="N", help="[1 3 5]")
    for name, value in Costs()._asdict().items():
        parser.add_argument(f"--{name}", type=float, default=value, metavar="US", help=f"[{value}]")
    args = parser.parse_args(argv)
    costs = Costs(*(getattr(args, name) for name in Costs._fields))
    alone = point(costs, 1).rate
    print("nodes   CPU us a message   messages a second   against one   copies   relays and crossings")
    for nodes in args.nodes:
        one = point(costs, nodes)
        print(f"{one.nodes:5}{one.us:19.2f}{one.rate:20,.0f}{one.rate / alone:13.2f}x{one.copies:9.0%}{one.ways:23.0%}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

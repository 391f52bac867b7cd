"""`rumqd cluster`: arguments of its commands. Each asks the agent of a node that runs on this machine."""

import argparse

from rumq.errors import RumqError

ABOUT = """\
Ask or change a cluster by way of a node that runs on this machine, named by its data directory. Changes of copies go on
while clients publish: a new copy is filled first, then it counts.
"""
EXAMPLES = """\
examples:
  rumqd cluster status                           nodes, shards, the control plane, and what is wrong
  rumqd cluster verify                           whether all copies are equal, byte for byte
  rumqd cluster drain                            this node leads nothing: before a restart
  rumqd cluster drain --back                     after it
  rumqd cluster rebalance                        spread leaders evenly
  rumqd cluster move 2 --to n3                   n3, which has a copy, leads shard 2
  rumqd cluster move 2 --from n1 --to n4         the copy of n1 goes to n4
  rumqd cluster add n4 --shard 0 --shard 1       one more copy of these shards
  rumqd cluster remove n1                        n1 has no copies any more; others take them

exit status: 0 done, for `status`: nothing is wrong, for `verify`: all copies are equal; 1 something is wrong, or any
other error
"""
VERIFY_ABOUT = """\
Every node that has a copy reads it once, up to what is committed, and tells the SHA-256 of its bytes, segment by
segment; they are compared with the leader's. A line for each copy of each partition: equal; different (and where);
behind (it lacks what is committed, after some seconds); away (its node does not answer). Changes nothing; clients are
served meanwhile.
"""
FORCE_ABOUT = """\
For a disaster: a majority of a shard's disks is lost for ever. This node's copy becomes the only one. Messages that it
never got are lost, though they were acknowledged. Copies on other nodes that live are made equal to it. Asks for the
name of the cluster, and leaves a mark.
Before it, look for the lost nodes' disks: a node that starts again with its disk loses nothing.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(metavar="COMMAND", title="commands", required=True)

    def command(name: str, line: str, about: str = "") -> argparse.ArgumentParser:
        made = commands.add_parser(
            name, help=line, description=about or line, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        made.add_argument(
            "-d", "--data", metavar="DIR", default="rumq-data", help="data directory of a node [rumq-data]"
        )
        made.set_defaults(run=run, cluster_command=name)
        return made

    command("status", "nodes, shards, the control plane, and what is wrong").add_argument(
        "--json", action="store_true", help="one JSON object"
    )
    command("verify", "whether the copies of each shard are equal", VERIFY_ABOUT).add_argument(
        "--json", action="store_true", help="one JSON object"
    )
    add = command("add", "put one more copy of shards on a node")
    add.add_argument("node", metavar="NODE", help="its name, or its id (name#disk)")
    add.add_argument("--shard", type=int, action="append", default=[], metavar="N", help="may be repeated [all shards]")
    remove = command("remove", "move all copies of a node to others, or give them up where no other node is free")
    remove.add_argument("node", metavar="NODE")
    drain = command("drain", "have this node hand over all shards that it leads, and get nothing new")
    drain.add_argument("--back", action="store_true", help="take it back: it may lead and get copies again")
    move = command("move", "move the lead of a shard, or a copy of it")
    move.add_argument("shard", type=int, metavar="SHARD")
    move.add_argument("--from", dest="source", metavar="NODE", help="whose copy [none: only the lead moves]")
    move.add_argument("--to", dest="target", metavar="NODE", required=True)
    command("rebalance", "spread the leaders of shards evenly over nodes")
    force = command("force-leader", "after a majority of disks was lost: go on with this node's copy", FORCE_ABOUT)
    force.add_argument("shard", type=int, metavar="SHARD")


def run(args: argparse.Namespace) -> int:
    from rumq.cli.cluster import orders
    from rumq.cli.cluster.agent_dialog import AgentDialog

    def tell(line: str) -> None:
        print(line, flush=True)

    with AgentDialog(args.data.rstrip("/")) as dialog:
        match args.cluster_command:
            case "status":
                from rumq.cli.cluster.status import print_status

                return print_status(dialog.status(), as_json=args.json)
            case "verify":
                from rumq.cli.cluster.verify import print_verification

                return print_verification(args.data.rstrip("/"), dialog.status().view, as_json=args.json)
            case "add":
                orders.add(dialog, args.node, args.shard, tell)
            case "remove":
                orders.remove(dialog, args.node, tell)
            case "drain" if args.back:
                dialog.leave(False)
                tell("this node may lead and get copies again: `rumqd cluster rebalance` gives it its share")
            case "drain":
                orders.drain(dialog, tell)
            case "move":
                orders.move(dialog, args.shard, args.source, args.target, tell)
            case "rebalance":
                orders.rebalance(dialog, tell)
            case "force-leader":
                run_force(args, dialog)
    return 0


def run_force(args: argparse.Namespace, dialog: object) -> None:
    from pathlib import Path

    from rumq.cli.cluster.agent_dialog import AgentDialog
    from rumq.cli.cluster.force_leader import force_leader
    from rumq.cluster.agent.node_identity import read_identity

    assert isinstance(dialog, AgentDialog)
    identity = read_identity(Path(args.data))
    if identity is None:
        raise RumqError(f"{args.data} has never been a node of a cluster")
    try:
        force_leader(dialog, args.data, args.shard, identity.cluster, input)
    except EOFError:
        raise RumqError("nothing was typed: nothing was changed") from None
    print(f"shard {args.shard} is led by {identity.id} within seconds; other copies follow: see the status")

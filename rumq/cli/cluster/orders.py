"""Changes that an operator orders: `add`, `remove`, `move`, `drain`, `rebalance`. A shard's leader carries them out."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from rumq.cli.cluster.agent_dialog import AgentDialog, OrderFailed
from rumq.cluster.control.agent_messages import AgentStatus
from rumq.cluster.control.records import ShardRecord, View
from rumq.cluster.orders.placement import copies_by_node, leader_moves, maybe_replacement
from rumq.cluster.replication.quorum import majority_of
from rumq.errors import RumqError

Tell = Callable[[str], None]
COMES_TRUE_SECONDS_MAX = 5.0  # a successor takes over within one or two
LOOK_SECONDS = 0.2


class NotPossible(RumqError):
    """An order that makes no sense as things are. why: what was seen, and the way out"""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why

    def __str__(self) -> str:
        return self.why


def current_view(status: AgentStatus) -> View:
    """raises: NotPossible, if the control plane is away: no change can be made then"""
    if status.view is None or not status.view.is_current:
        raise NotPossible(
            "the control plane does not answer, so nothing can be changed: see `rumqd cluster status`, and try again"
        )
    return status.view


def node_id(view: View, name: str) -> str:
    """The id of a node that is named by its name or its id; of a dead one by the shards that have it."""
    known = [node.id for node in view.nodes]
    known += [each for shard in view.shards for each in shard.record.members if each not in known]
    found = sorted({each for each in known if name in (each, each.partition("#")[0])})
    if len(found) == 1:
        return found[0]
    if found:
        raise NotPossible(f"{name} may be {' or '.join(found)}: name one of them with its disk")
    names = " ".join(sorted(node.name for node in view.nodes))
    raise NotPossible(f"there is no node {name}; alive are {names}: see `rumqd cluster status`")


def record_of(view: View, shard: int) -> ShardRecord:
    if not 0 <= shard < len(view.shards):
        raise NotPossible(f"there is no shard {shard}: they are 0 to {len(view.shards) - 1}")
    return view.shards[shard].record


def add(dialog: AgentDialog, name: str, shards: list[int], tell: Tell) -> None:
    """One more copy of these shards, of all if none is named, on a node."""
    view = current_view(dialog.status())
    node = node_id(view, name)
    take_back(dialog, view, node, tell)
    for shard in shards or range(len(view.shards)):
        replicas = record_of(view, shard).replicas
        if node in replicas:
            tell(f"shard {shard}: {name} has a copy already")
            continue
        change(dialog, shard, [*replicas, node], tell)


def remove(dialog: AgentDialog, name: str, tell: Tell) -> None:
    """A node has no copy any more, and gets none: each goes to another node that has none, if there is one."""
    view = current_view(dialog.status())
    node = node_id(view, name)
    load = copies_by_node(each.record for each in view.shards)
    wanted: dict[int, list[str]] = {}
    for shard, each in enumerate(view.shards):
        if node not in each.record.replicas:
            continue
        to = maybe_replacement(each.record, node, view.nodes, load)
        if to is not None:
            load[to] += 1
        rest = [to if one == node else one for one in each.record.replicas if one != node or to is not None]
        wanted[shard] = [one for one in rest if one is not None]
        if len(wanted[shard]) < majority_of(view.replicas):
            raise NotPossible(
                f"shard {shard} would have {len(wanted[shard])} of {view.replicas} copies, and nothing would be "
                "acknowledged: start another node first"
            )
    dialog.leave(True, node)
    for shard, replicas in wanted.items():
        change(dialog, shard, replicas, tell)
    tell(f"{name} has no copies and gets none, until `rumqd cluster add {name}`: it may be stopped")


def take_back(dialog: AgentDialog, view: View, node: str, tell: Tell) -> None:
    """A node that was removed gets copies again."""
    if node in view.removed:
        dialog.leave(False, node)
        tell(f"{node} may have copies again")


def move(dialog: AgentDialog, shard: int, source: str | None, target: str, tell: Tell) -> None:
    """A copy goes from one node to another; without a source, the leader hands over to the target."""
    view = current_view(dialog.status())
    record, to = record_of(view, shard), node_id(view, target)
    if source is None:
        if to not in record.replicas:
            raise NotPossible(
                f"{target} has no copy of shard {shard}, so it cannot lead it: name the node whose copy it takes "
                f"(rumqd cluster move {shard} --from NODE --to {target})"
            )
        hand_over(dialog, shard, to, tell)
        return
    gone = node_id(view, source)
    if gone not in record.replicas:
        raise NotPossible(f"{source} has no copy of shard {shard}: {' '.join(record.replicas)} have")
    if to in record.replicas:
        raise NotPossible(f"{target} has a copy of shard {shard} already")
    take_back(dialog, view, to, tell)
    change(dialog, shard, [to if each == gone else each for each in record.replicas], tell)


def drain(dialog: AgentDialog, tell: Tell) -> None:
    """The asked node leads nothing and gets nothing new, until `--back`: for a restart. Its copies stay."""
    status = dialog.status()
    view = current_view(status)
    dialog.leave(True)
    for shard, to in handed_over(view):
        hand_over(dialog, shard, to, tell)
    tell(f"{view.node} leads nothing: restart it, then `rumqd cluster drain --back`")


def handed_over(view: View) -> Iterator[tuple[int, str]]:
    """Shards that the asked node leads, each with the replica that leads least."""
    alive = {node.id for node in view.nodes if not node.leaves and node.id != view.node}
    leads = {each: sum(shard.record.leader == each for shard in view.shards) for each in alive}
    for shard, each in enumerate(view.shards):
        if each.record.leader != view.node:
            continue
        free = [one for one in each.record.replicas if one in alive]
        if not free:
            raise NotPossible(f"shard {shard}: no other replica lives that could lead it; start one first")
        to = min(free, key=lambda one: (leads[one], one))
        leads[to] += 1
        yield shard, to


def rebalance(dialog: AgentDialog, tell: Tell) -> None:
    """Leaders are spread evenly over the nodes that stay."""
    view = current_view(dialog.status())
    moves = leader_moves([each.record for each in view.shards], view.nodes)
    for each in moves:
        hand_over(dialog, each.shard, each.to, tell)
    if not moves:
        tell("leaders are spread evenly already")


def hand_over(dialog: AgentDialog, shard: int, to: str, tell: Tell) -> None:
    """Also done if the leader ended before it could say so, and the successor leads."""
    try:
        dialog.order("hand-over", shard, to=to)
    except OrderFailed as fault:
        if not came_true(dialog, shard, lambda record: record.leader == to):
            raise OrderFailed(f"shard {shard} was not handed over to {to}: {fault}") from None
    tell(f"shard {shard} is led by {to}")


def change(dialog: AgentDialog, shard: int, replicas: list[str], tell: Tell) -> None:
    """As `hand_over`: a leader that is not among the new replicas ends as soon as they are in force."""
    try:
        dialog.order("members", shard, members=replicas)
    except OrderFailed as fault:
        if not came_true(dialog, shard, lambda record: is_changed(record, replicas)):
            raise OrderFailed(f"shard {shard} keeps its replicas: {fault}") from None
    tell(f"shard {shard} has its copies at {' '.join(replicas)}")


def is_changed(record: ShardRecord, replicas: list[str]) -> bool:
    return set(record.replicas) == set(replicas) and record.old_replicas is None


def came_true(dialog: AgentDialog, shard: int, is_so: Callable[[ShardRecord], bool]) -> bool:
    """Whether a shard's record becomes so within some seconds."""
    until = time.monotonic() + COMES_TRUE_SECONDS_MAX
    while True:
        view = dialog.status().view
        if view is not None and shard < len(view.shards) and is_so(view.shards[shard].record):
            return True
        if time.monotonic() > until:
            return False
        time.sleep(LOOK_SECONDS)

"""Which nodes have copies of a shard, and who should lead it. Pure: records in, node ids out.

Copies are spread over zones, then over nodes by how many they have; a node that leaves gets nothing new. Equal inputs
give equal answers on every node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import NamedTuple

from rumq.cluster.control.records import NodeRecord, ShardRecord


class Move(NamedTuple):
    """The leader of a shard hands it over. to: a node id"""

    shard: int
    to: str


class Replacement(NamedTuple):
    """A copy of a shard belongs on another node. gone, to: node ids"""

    shard: int
    gone: str
    to: str


def by_zone(nodes: Iterable[NodeRecord]) -> list[NodeRecord]:
    """The first node of each zone, then the second of each, and so on; within a zone by id."""
    zones: dict[str, list[NodeRecord]] = {}
    for node in sorted(nodes, key=lambda node: node.id):
        zones.setdefault(node.zone, []).append(node)
    rounds = zip_longest(*(zones[zone] for zone in sorted(zones)))
    return [node for each in rounds for node in each if node is not None]


def first_replicas(shard: int, nodes: Sequence[NodeRecord], count: int) -> list[str]:
    """Node ids for a new shard, that of its preferred leader first. nodes: as of `by_zone`, not empty

    Shards begin at one node after the other, so that each is preferred by as many; then zones that have no copy come
    first."""
    start = shard % len(nodes)
    rest = [*nodes[start:], *nodes[:start]]
    chosen: list[NodeRecord] = []
    while rest and len(chosen) < count:
        used = Counter(node.zone for node in chosen)
        best = min(rest, key=lambda node: used[node.zone])  # the first of equals
        chosen.append(best)
        rest.remove(best)
    return [node.id for node in chosen]


def copies_by_node(shards: Iterable[ShardRecord]) -> Counter[str]:
    """How many copies each node has or is getting."""
    return Counter(node for record in shards for node in record.members)


def maybe_replacement(
    record: ShardRecord, gone: str, nodes: Sequence[NodeRecord], load: Mapping[str, int]
) -> str | None:
    """The node that gets the copy that `gone` had: of the zone with the fewest copies, then with the least load."""
    zone_of = {node.id: node.zone for node in nodes}
    used = Counter(zone_of[each] for each in record.members if each != gone and each in zone_of)
    free = [node for node in nodes if node.id not in record.members and not node.leaves]
    best = min(free, key=lambda node: (used[node.zone], load.get(node.id, 0), node.id), default=None)
    return best.id if best else None


def due_replacements(
    shards: Sequence[ShardRecord],
    nodes: Sequence[NodeRecord],
    gone_since: Mapping[str, float],
    now: float,
    replace_seconds: float,
) -> list[Replacement]:
    """Copies on nodes that have been gone for `replace_seconds`, each with the node that takes over.

    gone_since: when a node was last seen alive, in seconds of any clock. One change of a shard at a time: a shard whose
    members change is left alone, as is one that has no majority to agree to the change."""
    alive = {node.id for node in nodes}
    load = copies_by_node(shards)
    due = []
    for number, record in enumerate(shards):
        if record.old_replicas is not None or sum(each in alive for each in record.replicas) * 2 <= len(
            record.replicas
        ):
            continue
        for gone in record.replicas:
            since = gone_since.get(gone)
            if gone in alive or since is None or now - since < replace_seconds:
                continue
            to = maybe_replacement(record, gone, nodes, load)
            if to is not None:
                load[to] += 1
                due.append(Replacement(number, gone, to))
                break
    return due


def replaced(record: ShardRecord, change: Replacement) -> list[str]:
    """The wanted replicas after a replacement, at the same places."""
    return [change.to if each == change.gone else each for each in record.replicas]


def leader_moves(
    shards: Sequence[ShardRecord], nodes: Sequence[NodeRecord], weight: Mapping[int, float] | None = None
) -> list[Move]:
    """Hand-overs that even out how much each node leads, as few as possible; leaders of leaving nodes go first.

    weight: of a shard, such as bytes per second; without it all are equal"""
    balance = _Balance(shards, nodes, weight or {})
    for number in sorted(balance.leader):
        if balance.leader[number] not in balance.leads and (free := balance.targets(number)):
            balance.move(number, min(free, key=lambda each: (balance.leads[each], each)))
    while best := balance.maybe_best():
        balance.move(*best)
    moved = balance.leader.items()
    return [Move(number, to) for number, to in sorted(moved) if to != shards[number].leader]


class _Balance:
    """leads: what each staying node leads; leader: of each shard whose leader lives"""

    def __init__(self, shards: Sequence[ShardRecord], nodes: Sequence[NodeRecord], weight: Mapping[int, float]) -> None:
        alive = {node.id for node in nodes}
        self._shards, self._weight = shards, weight
        self.leads = {node.id: 0.0 for node in nodes if not node.leaves}
        self.leader = {number: each.leader for number, each in enumerate(shards) if each.leader in alive}
        for number, node in self.leader.items():
            self._add(node, self._weight_of(number))

    def targets(self, number: int) -> list[str]:
        record = self._shards[number]
        return [each for each in record.replicas if each in self.leads and each != self.leader[number]]

    def move(self, number: int, to: str) -> None:
        self._add(self.leader[number], -self._weight_of(number))
        self._add(to, self._weight_of(number))
        self.leader[number] = to

    def maybe_best(self) -> tuple[int, str] | None:
        """The move that evens out most. Each makes the sum of squares smaller, so there is a last one."""
        best, best_gain = None, 0.0
        for number, node in sorted(self.leader.items()):
            weight = self._weight_of(number)
            for to in self.targets(number) if node in self.leads else ():
                gain = weight * (self.leads[node] - self.leads[to] - weight)
                if gain > best_gain + 1e-9:
                    best, best_gain = (number, to), gain
        return best

    def _weight_of(self, number: int) -> float:
        return self._weight.get(number, 1.0)

    def _add(self, node: str, weight: float) -> None:
        if node in self.leads:
            self.leads[node] += weight

"""The nodes of a cluster as Kafka's brokers: their numbers and addresses, and who leads what, by the last view.

Pure: `rumq.cluster.connections.agent_views` brings the views."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from zlib import crc32

from rumq.cluster.control.leaders import leader_name, leads_here, maybe_record, unable_nodes
from rumq.cluster.control.records import NodeRecord, View

COORDINATING_SHARD = 0  # whose leader coordinates all groups
NUMBER_MASK = (1 << 31) - 1
NOBODY = -1


class KafkaNode(NamedTuple):
    """number: by which clients know it, the same at all nodes; host, port: for clients"""

    number: int
    name: str
    host: str
    port: int


class KafkaNodes:
    """streams: names, in the order of their partitions in the cluster; name: of this node

    view: None before the first"""

    def __init__(self, name: str, streams: Sequence[str]) -> None:
        self.name, self._streams = name, list(streams)
        self.view: View | None = None
        self._numbers: dict[str, int] = numbers_of([name])

    def take(self, view: View) -> None:
        self.view = view
        self._numbers = numbers_of({each.name for each in (*view.nodes, *view.unseen)} | {self.name})

    @property
    def own_number(self) -> int:
        return self._numbers[self.name]

    @property
    def serving(self) -> list[KafkaNode]:
        """Nodes whose Kafka server runs, this one too if it is known."""
        nodes = [] if self.view is None else self.view.nodes
        return [found for each in nodes if (found := self._maybe_node(each)) is not None]

    # Groups

    @property
    def coordinator(self) -> KafkaNode | None:
        """Where groups are coordinated; None: nobody knows, or no Kafka server runs there."""
        return self._maybe_leader(COORDINATING_SHARD)

    @property
    def coordinator_name(self) -> str:
        """Of the node that leads; empty: there is none."""
        return leader_name(self.view, COORDINATING_SHARD)

    @property
    def leads_here(self) -> bool:
        """Whether this node coordinates groups, as far as it knows: the shard itself says whether it does."""
        return leads_here(self.view, COORDINATING_SHARD)

    @property
    def unable(self) -> list[str]:
        """Nodes that may lead next and would lose what groups have committed: of a version before."""
        return unable_nodes(self.view, COORDINATING_SHARD)

    # Partitions

    def partitions_of(self, stream: str) -> int:
        """How many the cluster has laid out; 0: it is not known."""
        return 0 if self.view is None else self.view.layout.get(stream, 0)

    def leader_of(self, stream: str, number: int) -> int:
        """The number of the node that leads a partition and serves clients; NOBODY: none is known."""
        shard = self._shard_of(stream, number)
        found = None if shard is None else self._maybe_leader(shard)
        return NOBODY if found is None else found.number

    def holders_of(self, stream: str, number: int) -> list[int]:
        """Numbers of the nodes that have a copy of a partition and serve clients."""
        shard = self._shard_of(stream, number)
        record = None if shard is None else maybe_record(self.view, shard)
        if record is None:
            return []
        names = {each.partition("#")[0] for each in record.members}
        return [each.number for each in self.serving if each.name in names]

    def _shard_of(self, stream: str, number: int) -> int | None:
        """None: not known. Partitions are dealt out to shards in the order of streams."""
        if self.view is None or not self.view.shards or stream not in self._streams:
            return None
        before = self._streams[: self._streams.index(stream)]
        if any(each not in self.view.layout for each in before):
            return None
        return (sum(self.view.layout[each] for each in before) + number) % len(self.view.shards)

    def _maybe_leader(self, shard: int) -> KafkaNode | None:
        record = maybe_record(self.view, shard)
        if record is None or self.view is None:
            return None
        # One without a live lease may lead all the same.
        known = (each for each in (*self.view.nodes, *self.view.unseen) if each.id == record.leader)
        found = next(known, None)
        return None if found is None else self._maybe_node(found)

    def _maybe_node(self, record: NodeRecord) -> KafkaNode | None:
        host, _, port = record.kafka.rpartition(":")
        if not host or not port.isdecimal():
            return None
        return KafkaNode(self._numbers[record.name], record.name, host.strip("[]"), int(port))


def numbers_of(names: Sequence[str] | set[str]) -> dict[str, int]:
    """By name alone, so that a node that comes or goes changes no other one's; two that fall together are told apart
    by the order of their names."""
    found: dict[str, int] = {}
    for name in sorted(names):
        number = crc32(name.encode()) & NUMBER_MASK
        while number in found.values():
            number = (number + 1) & NUMBER_MASK
        found[name] = number
    return found

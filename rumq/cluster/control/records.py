"""What the control plane stores of a cluster, and the view that a node has of it.

A node id is "name#disk": a replaced disk makes another node, which has none of the old one's votes."""

from __future__ import annotations

import msgspec

HANDED_OVER = "handed-"  # before the claim's id: the leader before has asked for this successor


class ClusterRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Written once, by the first node. id: unique, hex; shards, replicas: counts; created_us: since 1970"""

    id: str
    shards: int
    replicas: int
    feature_level: int
    created_us: int


class NodeRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One node while it lives; under a lease.

    host, port: the advertised cluster address; shard i listens on port + 1 + i. mqtt: addresses for clients
    incarnation: of this run; has_log: its disk had records when it first joined; clock_us: its clock when last renewed
    leaves: it is draining: nothing new is placed there; partitions: by stream, as its data directory has them, or the
    settings for an empty one; none: a version that does not say
    moves: it goes on with the connections of a shard that is handed to it
    kafka: address of its Kafka server for clients, "host:port", while that runs; keeps: as a leader it has the journal
    keep what Kafka's groups commit
    packs: it knows copies whose files are packed, each for itself: `all_pack`"""

    id: str
    host: str
    port: int
    mqtt: list[str]
    zone: str
    incarnation: str
    version: str
    feature_level: int
    has_log: bool
    clock_us: int
    leaves: bool = False
    partitions: dict[str, int] = {}
    moves: bool = False
    kafka: str = ""
    keeps: bool = False
    packs: bool = False

    @property
    def name(self) -> str:
        return self.id.partition("#")[0]


class ShardRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Who leads a shard, and who has copies. Changed by compare-and-swap only; each new leader raises `epoch` by one.

    leader: node id, "" for none; claim: unique to the attempt that wrote this, perhaps behind a mark
    replicas: node ids, those preferred as leaders first; old_replicas: while members change, a majority of these is
    needed too; learners: get the log, have no vote
    term: the claim that raised the epoch; with the epoch it names one leadership, "" in records of versions before
    config: raised by one with each change of voters; forced: the last epoch that an operator forced, 0 for none"""

    epoch: int
    leader: str
    claim: str
    replicas: list[str]
    old_replicas: list[str] | None = None
    learners: list[str] = []
    term: str = ""
    config: int = 0
    forced: int = 0

    @property
    def voters(self) -> list[str]:
        """Everybody with a vote, old and new."""
        old = self.old_replicas or []
        return [*self.replicas, *(each for each in old if each not in self.replicas)]

    @property
    def members(self) -> list[str]:
        """Everybody who gets the log."""
        voters = self.voters
        return [*voters, *(each for each in self.learners if each not in voters)]


class Versioned(msgspec.Struct, frozen=True):
    """A shard's record with the revision that the next compare-and-swap must name; 0: there is none yet."""

    record: ShardRecord
    revision: int


class View(msgspec.Struct, frozen=True, kw_only=True):
    """What a node knows of its cluster. node: its own id; nodes: those with a live lease; shards: by number

    is_current: the control plane answered within the last seconds
    epochs_back: shards whose record has a lower epoch than was seen before; nothing is claimed from it
    restored: this node's disk is an old copy, and lacks what came before this stamp; 0: it is not
    layout: partitions by stream, the same on all nodes; empty: a version that did not say has formed the cluster
    removed: ids of nodes that an operator has removed: they get no copies, and `leaves` is set in their records
    unseen: leaders without a live lease, as they were seen last: they may lead all the same, if the control plane alone
    cannot see them"""

    cluster: str
    node: str
    replicas: int
    nodes: list[NodeRecord]
    shards: list[Versioned]
    is_current: bool
    epochs_back: list[int] = []
    restored: int = 0
    layout: dict[str, int] = {}
    removed: list[str] = []
    unseen: list[NodeRecord] = []

    def node_of(self, node_id: str) -> NodeRecord | None:
        return next((each for each in self.nodes if each.id == node_id), None)

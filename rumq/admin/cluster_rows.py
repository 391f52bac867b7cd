"""Rows of answers about a cluster: its nodes, the copies of its shards, its control plane. docs/guides/cluster.md

A node is called by its name; one that is gone while another disk has its name, by its id, "name#disk"."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Struct

from rumq.admin.units import field

ShardState = Literal["ok", "behind", "changing", "opening", "no quorum", "no leader", "unknown"]
STATES = (
    "ok; behind: a copy is not in sync; changing: its copies move; opening: its leader begins; no quorum: its leader "
    "hears no majority, and acknowledges nothing; no leader; unknown: its leader does not answer"
)


class MissingShard(Struct, kw_only=True):
    """A shard of the cluster that has not answered."""

    shard: int
    why: str


class NodeRow(Struct, kw_only=True):
    """A node of the cluster."""

    node: str
    id: Annotated[str, field("name#disk: with another disk it is another node")]
    alive: Annotated[bool, field("its lease is held")]
    leaves: Annotated[bool, field("it is drained: it leads nothing and gets nothing new")] = False
    address: Annotated[str, field("host:port for other nodes, the port to count from; empty: gone")] = ""
    mqtt: Annotated[list[str], field("host:port for clients")] = []
    zone: str = ""
    version: str = ""
    leads: Annotated[list[int], field("shards")]
    copies: Annotated[list[int], field("shards of which it has a copy")]


class TermRow(Struct, kw_only=True):
    """A shard, as its leader sees its copies. Nodes are ids."""

    shard: int
    epoch: int
    leader: str
    is_open: Annotated[bool, field("a majority follows this leader, so clients are served")]
    has_quorum: Annotated[bool, field("a majority has answered within 2 s")]
    in_sync: Annotated[list[str], field("its own copy, and those that get what is written as it is written")]
    behind_records: Annotated[
        dict[str, int | None], field("by follower; null: it is away, or is being compared", "records")
    ]
    behind_bytes: Annotated[dict[str, int | None], field("the same in bytes of files", "bytes")]
    members: Annotated[list[str], field("that get its log, as it knows them; empty: an older version")] = []


class ShardCopies(Struct, kw_only=True):
    """A shard with its copies."""

    shard: int
    leader: Annotated[str | None, field("null: none, or its node is gone")]
    epoch: Annotated[int, field("one higher with each leader")]
    members: Annotated[list[str], field("that have a vote")]
    learners: Annotated[list[str], field("that are being filled, without a vote")] = []
    state: Annotated[ShardState, field(STATES)]
    in_sync: Annotated[list[str], field("that lack nothing; empty: not known")] = []
    behind_records: Annotated[dict[str, int | None], field("by follower; null: it is away", "records")] = {}
    behind_bytes: Annotated[dict[str, int | None], field("by follower; null: it is away", "bytes")] = {}
    failovers: Annotated[int, field("leaders that were replaced, seen by the asked node since it started")] = 0
    hand_overs: Annotated[int, field("leaders that gave the lead away, seen likewise")] = 0


class OrderRow(Struct, kw_only=True):
    """A change of a shard's copies."""

    shard: int
    order: Annotated[str, field("fill: copies learn; members: old and new ones decide together")]
    nodes: Annotated[list[str], field("that are filled, or that will have the copies")]


class ControlMember(Struct, kw_only=True):
    """A member of the control plane."""

    endpoint: str
    answers: bool
    leads: bool = False
    version: str = ""
    stored_bytes: Annotated[int, field("of its database", "bytes")] = 0
    seconds: Annotated[float, field("until it answered", "seconds")] = 0.0
    why: Annotated[str, field("why it does not answer")] = ""


class ControlRow(Struct, kw_only=True):
    """The control plane, as the asked node reaches it."""

    kind: Annotated[str, field("etcd, or local for a cluster of one node")]
    lost_seconds: Annotated[float, field("without an answer; 0: it answers", "seconds")]
    renew_seconds: Annotated[float, field("that the last renewal of the node's lease took", "seconds")]
    requests: Annotated[int, field("sent by this node so far", "requests")]
    members: Annotated[list[ControlMember], field("empty if only the node's own knowledge was asked for")] = []

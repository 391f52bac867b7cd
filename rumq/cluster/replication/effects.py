"""What the sans-IO parts of replication ask their driver to do. A peer is a node id."""

from __future__ import annotations

from typing import NamedTuple

from rumq.cluster.control.records import ShardRecord
from rumq.cluster.replication.messages import ReplicaMessage, SegmentInfo


class Send(NamedTuple):
    """To a peer's shard process, over the link that this process dials; nothing if it cannot be reached."""

    peer: str
    message: ReplicaMessage


class Reply(NamedTuple):
    """Over a link that another process has dialled. is_last: close it then"""

    link: int
    message: ReplicaMessage
    is_last: bool = False


class FeedFollower(NamedTuple):
    """Make a follower's copy of a partition equal to the leader's, then send what is written as it is written.

    segments: that the follower has"""

    peer: str
    partition: str
    segments: list[SegmentInfo]


class Serve(NamedTuple):
    """Send a claimant what its copy of a partition lacks, and `Fetched`. have: its segments"""

    link: int
    epoch: int
    partition: str
    have: list[SegmentInfo]


class MarkCommitted(NamedTuple):
    partition: str
    lsn: int


class TermOpen(NamedTuple):
    """A majority has everything that the leader had when it took office: it may commit, and serve."""


class Fenced(NamedTuple):
    """After a change of members: majorities have promised the new epoch. Note it as opened on this node's disk."""


class OwnDoubt(NamedTuple):
    """This leader's log lacks what was committed: note that it is doubted. Followed by `Deposed`."""

    why: str


class QuorumLost(NamedTuple):
    """Too few replicas answer. unheard: node ids"""

    unheard: list[str]


class QuorumBack(NamedTuple): ...


class Deposed(NamedTuple):
    """There is another leader, or may be one: this process must end."""

    why: str


class ClaimShard(NamedTuple):
    """Replace the shard's record, if it has this revision; the result is an event."""

    revision: int
    record: ShardRecord


class Lead(NamedTuple):
    """Take office: the log is adopted and synced. ends: by partition, the lsn behind its last record"""

    epoch: int
    record: ShardRecord
    ends: dict[str, int]


class Alarm(NamedTuple):
    """Something that an operator must see. name: of an event; why: what was found, and the way out"""

    name: str
    why: str


Effect = (
    Send | Reply | FeedFollower | Serve | MarkCommitted | TermOpen | Fenced | OwnDoubt | QuorumLost | QuorumBack
    | Deposed | ClaimShard | Lead | Alarm
)  # fmt: skip

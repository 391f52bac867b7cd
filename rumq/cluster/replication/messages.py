"""Messages between the replicas of a shard. Each carries the epoch of its sender's term.

The rules: docs/explanation/replication.md. A partition is named by its key, its path below the data directory:
"main/g1/p0"."""

from __future__ import annotations

import msgspec

from rumq.cluster.links.greeting import Greeting, GreetingRefused

# Instead of an opened epoch: this copy is damaged, and does not count until a leader has repaired it.
DOUBTED = -1


class SegmentInfo(msgspec.Struct, frozen=True, array_like=True):
    """A segment of a replica. name: of its file; end_lsn, stop: the lsn and the byte behind its last whole chunk
    is_done: sealed or abandoned; nothing is added to it
    salt: of the file; bytes of files with different salts are not compared. 0: an earlier version does not say"""

    name: str
    base_lsn: int
    end_lsn: int
    stop: int
    is_done: bool
    salt: int = 0


class Members(msgspec.Struct, frozen=True, array_like=True):
    """Who has a vote, as a replica noted it when it opened a term. opened: the epoch of that term

    config: of the record, raised by one with each change of voters"""

    opened: int
    config: int
    replicas: list[str]
    old_replicas: list[str] | None = None

    @property
    def voters(self) -> list[str]:
        """Everybody with a vote, old and new."""
        old = self.old_replicas or []
        return [*self.replicas, *(each for each in old if each not in self.replicas)]


class Poll(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """Before a claim: do you still hear the leader?"""


class Polled(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """hears_leader: heard of it within its patience, or is it; records: sum of next lsns, to rank claimants

    members: as noted, None: nothing was noted"""

    hears_leader: bool
    promised: int
    opened: int
    records: int
    members: Members | None = None


class Promise(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """The sender has won the shard's claim of this epoch: listen to no older leader.

    term: the claim, "" from versions that do not tell it; forced: as in the record"""

    epoch: int
    term: str = ""
    forced: int = 0


class Promised(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """opened: epoch of the last leader whose log is completely here, `DOUBTED` if it may lack what was acknowledged

    ends: by partition, the lsn behind its last record; all of it is synced
    opened_term: the claim of the opened epoch; members: as noted then
    marks: by partition, the lsn up to which this replica knows it to be committed, whatever its copy still has;
    None from versions that keep no marks
    forgets: promises may be missing as well"""

    epoch: int
    opened: int
    ends: dict[str, int]
    opened_term: str = ""
    members: Members | None = None
    marks: dict[str, int] | None = None
    forgets: bool = False


class Outdated(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """Another term was promised: the sender of what this answers is no leader any more, or will not be one.

    term: the claim of the promised epoch"""

    promised: int
    term: str = ""


class FetchCopy(msgspec.Struct, frozen=True, tag="Fetch", array_like=True):
    """To a replica that has promised this epoch: send what the claimant's copy of a partition lacks. Answered by the
    `Cut`, `Open` and `Write`, and `Fetched` as the last one. have: the claimant's segments"""

    epoch: int
    partition: str
    have: list[SegmentInfo]


class Fetched(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """Everything of a partition has been sent."""

    epoch: int
    partition: str


class Inventory(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """The leader asks a follower which segments it has of a partition."""

    epoch: int
    partition: str


class SegmentStates(msgspec.Struct, frozen=True, tag="Segments", array_like=True):
    epoch: int
    partition: str
    segments: list[SegmentInfo]


class Cut(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """Make a follower's copy a prefix of the leader's: remove whole segments, and end one at a chunk.

    drop: names; name: of the one that ends at byte `stop`, before `end_lsn`; "" for none
    first_lsn: of the leader's log; segments wholly below it are removed too
    salt: of the leader's file of that segment, which `stop` is a byte of
    refill, refill_lsn: the copy's last segment, whose file is another one than the leader's: all of it is sent next,
    and takes the place of what is there once it goes up to this lsn"""

    epoch: int
    partition: str
    drop: list[str]
    name: str
    end_lsn: int
    stop: int
    first_lsn: int
    salt: int = 0
    refill: str = ""
    refill_lsn: int = 0


class Open(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """A segment begins; its raw bytes are the 4096 of its header."""

    epoch: int
    partition: str
    name: str
    base_lsn: int


class Write(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """Whole chunks of a segment, as raw bytes, at `position`."""

    epoch: int
    partition: str
    name: str
    position: int


class Names(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """The topics and publishers of a log whose beginning is removed, for a copy that has no segment; raw: a snapshot of
    them, as docs/reference/log-format.md has it."""

    epoch: int
    partition: str


class TrimCopy(msgspec.Struct, frozen=True, tag="Trim", array_like=True):
    """Retention has removed everything below `first_lsn`."""

    epoch: int
    partition: str
    first_lsn: int


class Synced(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """A follower has written and synced a partition up to `next_lsn`, which ends at byte `stop` of segment `name`."""

    epoch: int
    partition: str
    next_lsn: int
    name: str
    stop: int


class Complete(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """The follower has been sent everything that the leader had when it took office. members: of the term"""

    epoch: int
    members: Members | None = None


class Distrust(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """The copy ends before what it had acknowledged in this term: it is not to be relied on until it is complete."""

    epoch: int


class Ahead(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """The follower knows more of a partition to be committed than the leader's log has: it is not cut. why: in words"""

    epoch: int
    partition: str
    why: str


class Opened(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """... and has synced it, and noted that its log is of this epoch."""

    epoch: int


class Beat(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """The leader lives; committed: lsns by partition, where they have changed; members: of the term, when they have

    count: of this beat, 0: not told"""

    epoch: int
    committed: dict[str, int]
    members: Members | None = None
    count: int = 0


class Heard(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """Answers a beat. is_well: the follower's disk is good enough to lead with

    count: of the beat; 0: not told, `NOT_LEASED`: the follower may promise a higher epoch at any time. R15"""

    epoch: int
    is_well: bool = True
    count: int = 0


class Succeed(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """The leader hands its shard over: it takes nothing more, the follower has everything, and claims now."""

    epoch: int


ReplicaMessage = (
    Greeting | GreetingRefused | Poll | Polled | Promise | Promised | Outdated | FetchCopy | Fetched | Inventory
    | SegmentStates | Cut | Open | Write | Names | TrimCopy | Synced | Complete | Distrust | Ahead | Opened | Beat
    | Heard | Succeed
)  # fmt: skip

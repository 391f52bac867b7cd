"""The leader of a shard: brings followers up to its log, opens its term, and commits by majority. Sans-IO.

docs/explanation/replication.md has the rules by number; each is named here where it is kept. The driver sends the
bytes of the log themselves (`rumq.shards.replication`); this knows how far each replica has synced them."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

from rumq.cluster.control.records import ShardRecord
from rumq.cluster.replication import effects as fx
from rumq.cluster.replication import messages as m
from rumq.cluster.replication.follower import FollowerProgress
from rumq.cluster.replication.majority_lease import MajorityLease
from rumq.cluster.replication.quorum import committed_lsn, copies_lsn, has_quorum, members_of
from rumq.cluster.replication.quorum_watch import QUORUM_SECONDS, QuorumWatch

BEAT_SECONDS = 0.1


class LeaderCore:
    """effects: for the driver, who takes them with `take_effects`. is_open: the term is; is_deposed: nothing counts"""

    def __init__(
        self, epoch: int, node: str, record: ShardRecord, ends: Mapping[str, int], copies_min: int = 1
    ) -> None:
        """node: of the leader; record: as it was claimed; ends: by partition, the lsn behind what is synced here

        copies_min: a majority of the copies that the cluster is to have: also while a shard has fewer members, so many
        have what is committed, learners too"""
        self.epoch, self.node, self.record = epoch, node, record
        self.ends = dict(ends)
        self.own = dict(ends)  # by partition: lsns that are synced on this node
        self.is_open = self.is_deposed = False
        self.is_fenced = True  # True once a majority has promised this term
        self._quorum = QuorumWatch(node, copies_min)
        self._committed = dict.fromkeys(ends, 0)
        self._followers: dict[str, FollowerProgress] = {}
        self._next_beat = 0.0
        self._lease = MajorityLease(node)
        self._ticked_at = -inf
        self._effects: list[fx.Effect] = []
        self._name_followers()

    def _name_followers(self) -> None:
        members = [each for each in self.record.members if each != self.node]
        self._followers = {each: self._followers.get(each) or FollowerProgress() for each in members}

    @property
    def peers(self) -> list[str]:
        """The replicas to be linked with."""
        return list(self._followers)

    @property
    def has_quorum(self) -> bool:
        """Whether enough replicas answer."""
        return self._quorum.has_quorum

    def take_effects(self) -> list[fx.Effect]:
        effects, self._effects = self._effects, []
        return effects

    def committed(self, partition: str) -> int:
        return self._committed[partition]

    def behind(self) -> dict[str, int | None]:
        """By follower: how many records it lacks; None while it is away or not part of the term."""
        return {peer: follower.maybe_behind(self.own) for peer, follower in self._followers.items()}

    def is_heard(self, peer: str, now: float) -> bool:
        """Whether a follower has answered of late."""
        follower = self._followers.get(peer)
        return follower is not None and follower.heard_at is not None and now - follower.heard_at < QUORUM_SECONDS

    def has_all(self, peer: str) -> bool:
        """Whether a follower has synced everything that is synced here."""
        follower = self._followers.get(peer)
        return (
            follower is not None
            and follower.is_linked
            and follower.has_opened
            and all(follower.synced.get(p, 0) >= lsn for p, lsn in self.own.items())
        )

    def maybe_successor(self) -> str | None:
        """A voter that may lead instead: its disk is well, and it lacks the least; None: there is none."""
        well = [
            peer
            for peer in self.record.replicas
            if (follower := self._followers.get(peer)) is not None
            and follower.is_linked
            and follower.has_opened
            and follower.is_well
        ]
        return max(well, key=lambda peer: sum(self._followers[peer].synced.values()), default=None)

    # Links

    def start(self) -> None:
        """Before anything else; with one replica the term is open at once."""
        self._open()

    def connected(self, peer: str) -> None:
        follower = self._followers.get(peer)
        if follower is None or self.is_deposed:
            return
        follower.is_linked, follower.has_promised = True, False
        follower.is_complete = follower.has_opened
        follower.told, follower.told_config = {}, -1
        self._lease.linked(peer, self._ticked_at)
        self._send(peer, self._promise())

    def _promise(self) -> m.Promise:
        return m.Promise(self.epoch, self.record.term, self.record.forced)

    def lost(self, peer: str) -> None:
        if (follower := self._followers.get(peer)) is not None:
            follower.is_linked = follower.has_promised = False
        self._lease.forget(peer)

    def received(self, peer: str, message: m.ReplicaMessage, now: float) -> None:
        follower = self._followers.get(peer)
        if follower is None or self.is_deposed or not follower.is_linked:
            return
        if isinstance(message, m.Outdated):
            self._outdated(peer, message)
            return
        if getattr(message, "epoch", self.epoch) != self.epoch:
            return  # it answers an earlier epoch of this leader
        follower.heard_at = now
        if isinstance(message, m.Ahead):
            self._doubt_own(f"{peer} keeps its copy: {message.why}")
        elif isinstance(message, m.Heard):
            follower.is_well = message.is_well
            self._lease.answered(peer, message.count)
            self._feed_confirmed()
        elif isinstance(message, m.Promised):
            self._promised(peer, follower, message, now)
        elif isinstance(message, m.SegmentStates) and follower.has_promised:
            follower.asked[message.partition] = max(0, follower.asked[message.partition] - 1)
            if not follower.asked[message.partition]:
                self._effects.append(fx.FeedFollower(peer, message.partition, message.segments))
        elif isinstance(message, m.Synced) and follower.has_promised:
            if follower.asked[message.partition]:
                return  # of what may be cut off
            for known in (follower.synced, follower.acknowledged):
                known[message.partition] = max(known.get(message.partition, 0), message.next_lsn)
            self._complete(peer, follower)
            if follower.has_opened:
                self._commit(message.partition)
        elif isinstance(message, m.Opened) and follower.has_promised and follower.is_complete:
            follower.has_opened = True
            self._open()
            self._commit_all()

    def _outdated(self, peer: str, message: m.Outdated) -> None:
        if message.promised > self.epoch:
            self.depose(f"{peer} has promised epoch {message.promised}, this term has {self.epoch}")
        elif message.promised == self.epoch and message.term not in ("", self.record.term) and self.record.term:
            self.depose(f"{peer} has promised epoch {self.epoch} to another leader")

    def depose(self, why: str) -> None:
        """R9: a higher epoch exists, or may exist."""
        if not self.is_deposed:
            self.is_deposed = True
            self.is_open = False
            self._effects.append(fx.Deposed(why))

    def _promised(self, peer: str, follower: FollowerProgress, message: m.Promised, now: float) -> None:
        for partition, mark in (message.marks or {}).items():
            # What a copy without its promises knows may be of a newer leader, whom the others tell of.
            if mark > self.own.get(partition, 0) and not message.forgets:
                self._doubt_own(
                    f"{peer} knows that {partition} is committed up to lsn {mark}, and this leader's log ends at"
                    f" {self.own.get(partition, 0)}"
                )
                return
        follower.has_promised = True
        self._lease.promised(peer)
        self._fence()
        # Only a copy that was completed in this term is known to be a prefix of this log.
        is_own = message.opened == self.epoch and message.opened_term in ("", self.record.term)
        if follower.has_lost(message.ends) and message.marks is not None:
            # R11: it would vote for a log that lacks what it had acknowledged here.
            self._send(peer, m.Distrust(self.epoch))
            is_own = False
        follower.has_opened = follower.is_complete = is_own
        # How far it is, it says once its copy has been compared: its end may be of chunks that were given up here.
        follower.synced = {}
        follower.asked.clear()
        follower.forgets_since = now if message.forgets and peer in self.record.voters else None
        if follower.forgets_since is None:
            self._compare_all(peer)
        else:
            self._feed_confirmed()
        if follower.has_opened:
            self._open()
            self._commit_all()

    def _doubt_own(self, why: str) -> None:
        """R5: this log lacks what was committed, so no copy may be made equal to it."""
        self._effects.append(fx.OwnDoubt(f"{why}: a disk went back in time"))
        self.depose(why)

    def _fence(self) -> None:
        """R2: after a change of members, majorities have promised the new term, so no other term has its epoch."""
        promised = [
            self.node,
            *(p for p, f in self._followers.items() if f.has_promised and f.forgets_since is None),
        ]
        if not self.is_fenced and has_quorum(self.record, promised):
            self.is_fenced = True
            self._effects.append(fx.Fenced())
            for peer, follower in self._followers.items():
                self._complete(peer, follower)
            self._open()

    def _compare_all(self, peer: str) -> None:
        for partition in self.own:
            self.compare_with(peer, partition)

    def _feed_confirmed(self) -> None:
        """R11: whom a copy without its promises may have promised more, says so when it is asked after the copy was."""
        for peer, follower in self._followers.items():
            since = follower.forgets_since
            if since is None or not follower.has_promised:
                continue
            others = [each for each in self.record.voters if each not in (self.node, peer)]
            if all(self._lease.heard_since(each, since) for each in others):
                follower.forgets_since = None
                self._compare_all(peer)

    def compare(self, partition: str) -> None:
        """What was sent of a partition last counts no more: every follower's copy is compared anew.

        Call it before `written` tells of what took its place."""
        for peer, follower in self._followers.items():
            follower.synced.pop(partition, None)
            follower.acknowledged.pop(partition, None)  # what it had acknowledged may be cut here
            self.compare_with(peer, partition)

    def compare_with(self, peer: str, partition: str) -> None:
        """Compare a follower's copy anew; what it acknowledges meanwhile does not count, for it may be cut off."""
        follower = self._followers.get(peer)
        if follower is None or follower.forgets_since is not None:
            return
        if follower.is_linked and follower.has_promised:
            follower.asked[partition] += 1
            self._send(peer, m.Inventory(self.epoch, partition))

    def _complete(self, peer: str, follower: FollowerProgress) -> None:
        """R4: it has everything of before this term; it is to note that, once."""
        if not self.is_fenced or not follower.has_promised or follower.is_complete:
            return
        if follower.has_all(self.ends, self._committed):
            follower.is_complete = True
            follower.told_config = self.record.config
            self._send(peer, m.Complete(self.epoch, members_of(self.record, self.epoch)))

    # The term

    def _open(self) -> None:
        if self.is_open or self.is_deposed or not self.is_fenced:
            return
        opened = [self.node, *(peer for peer, f in self._followers.items() if f.has_opened)]
        if has_quorum(self.record, opened):
            self.is_open = True
            self._effects.append(fx.TermOpen())
            self._commit_all()

    def written(self, partition: str, next_lsn: int) -> None:
        """R6: the leader's own copy counts once it is synced."""
        self.own[partition] = max(self.own[partition], next_lsn)
        self._commit(partition)

    def _commit_all(self) -> None:
        for partition in self.own:
            self._commit(partition)

    def _commit(self, partition: str) -> None:
        """R7: what a majority has synced, as parts of this term."""
        if not self.is_open:
            return
        synced = {peer: f.synced.get(partition, 0) for peer, f in self._followers.items() if f.has_opened}
        synced[self.node] = self.own[partition]
        # Nothing that is not synced here: `change` goes on in the next epoch without a fence.
        copies_min = self._quorum.copies_min(self.record)
        lsn = min(committed_lsn(self.record, synced), copies_lsn(copies_min, synced), self.own[partition])
        if lsn > self._committed[partition]:
            self._committed[partition] = lsn
            self._effects.append(fx.MarkCommitted(partition, lsn))

    # Time

    def tick(self, now: float) -> None:
        """Monotonic seconds; call it at `next_deadline`."""
        self._ticked_at = now
        if self.is_deposed:
            return
        self._quorum.began(now)
        if now >= self._next_beat:
            self._next_beat = now + BEAT_SECONDS
            for peer, follower in self._followers.items():
                if follower.is_linked and follower.has_promised:
                    count = self._lease.sent(peer, now)
                    members = self._maybe_members(follower)
                    self._send(peer, m.Beat(self.epoch, self._news(follower), members, count))
        if (change := self._quorum.maybe_change(self.record, self._followers, now)) is not None:
            self._effects.append(change)

    def _news(self, follower: FollowerProgress) -> dict[str, int]:
        """What is committed of a follower's copy. Before it has opened the term, its records may be others."""
        if not follower.has_opened:
            return {}
        news = {}
        for partition, lsn in self._committed.items():
            lsn = min(lsn, follower.synced.get(partition, 0))
            if lsn > follower.told.get(partition, 0):
                news[partition] = follower.told[partition] = lsn
        return news

    def _maybe_members(self, follower: FollowerProgress) -> m.Members | None:
        """Of the term, once after each change, to a follower that has opened it."""
        if not follower.has_opened or follower.told_config == self.record.config:
            return None
        follower.told_config = self.record.config
        return members_of(self.record, self.epoch)

    @property
    def next_deadline(self) -> float:
        return inf if self.is_deposed else self._next_beat

    # The lease of the majority: R15

    def holds_lease(self, now: float) -> bool:
        """Whether no other leader can have committed anything. now: read after what is to be answered has come"""
        return not self.is_deposed and now < self._lease.until(self.record)

    def succeed(self, peer: str) -> None:
        """Have a follower claim the shard: from here on it may lead at any time."""
        self._lease.begin_anew()
        self._send(peer, m.Succeed(self.epoch))

    # Members

    def change(self, epoch: int, record: ShardRecord) -> None:
        """This leader has won a claim of its own shard, with other members: fence and open again, in the new epoch.

        Nothing is committed until majorities of the old and the new members have opened it. The driver has noted the
        epoch as promised on this node's disk, and notes it as opened at `Fenced`."""
        assert epoch > self.epoch
        self.epoch, self.record = epoch, record
        self.is_open = self.is_fenced = False
        self.ends = dict(self.own)
        self._name_followers()
        for peer, follower in self._followers.items():
            follower.has_promised = follower.has_opened = follower.is_complete = False
            follower.acknowledged = {}
            if follower.is_linked:
                self._send(peer, self._promise())
        self._fence()

    def settle(self, record: ShardRecord) -> None:
        """The old members are out of the record, which keeps its epoch: only the new ones count from now on. Or it was
        lost, and is written again as it was: then its claim alone is new."""
        assert record.epoch == self.epoch and record.old_replicas in (None, self.record.old_replicas)
        self.record = record
        self._name_followers()
        if self.node not in record.members:
            self.depose("this node has no copy of the shard any more")
            return
        self._open()
        self._commit_all()

    def _send(self, peer: str, message: m.ReplicaMessage) -> None:
        self._effects.append(fx.Send(peer, message))

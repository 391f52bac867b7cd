"""A change of a shard's members, by its leader: they learn, then old and new ones decide together, then the new alone.

Each step is a compare-and-swap of the shard's record. A successor finishes what it finds half done."""

from __future__ import annotations

import os
from collections.abc import Callable
from enum import Enum, auto

from msgspec import structs

from commitlog.replica.replica_state import StoredReplicaState
from rumq.cluster.control.agent_messages import AgentMessage, Claim, Claimed
from rumq.cluster.control.records import ShardRecord, Versioned, View
from rumq.cluster.replication.quorum import members_of, noted
from rumq.loop.ports import Timers
from rumq.shards.replication.replication import Replication

LOOK_SECONDS = 0.1
UNKNOWN_SECONDS = 5.0  # without an answer, or with one that knows nothing: then the change is asked for once more
NEAR_RECORDS = 10_000  # a learner that lacks no more may vote


class ChangeStep(Enum):
    NONE = auto()
    LEARNING = auto()
    JOINING = auto()
    SETTLING = auto()


class MemberChange:
    """wanted: the members that there will be; empty while nothing changes"""

    def __init__(
        self, shard: int, state: StoredReplicaState, replication: Replication, say: Callable[[AgentMessage], bool],
        timers: Timers,
    ) -> None:  # fmt: skip
        """state: of this node's replica; say: to the agent"""
        self._shard, self._state, self._replication, self._say = shard, state, replication, say
        self._timers = timers
        self.wanted: list[str] = []
        self._step = ChangeStep.NONE
        self._revision = 0
        self._request = 0
        self._claimed: ShardRecord | None = None  # asked for, and not answered
        self._asked: dict[str, ShardRecord] = {}  # by claim id, those of which one may still come into force
        self._looks = 0  # since `_claimed` was asked for
        self._done: Callable[[str], None] = lambda why: None
        self._replicas = 0
        self._is_lost = False  # the control plane was restored from a copy of before this term
        self._look()

    @property
    def _record(self) -> ShardRecord:
        return self._replication.core.record

    def begin(self, members: list[str], done: Callable[[str], None]) -> None:
        """done: told why it was not begun, or has failed; "" once the new members decide alone"""
        record = self._record
        if self.wanted and not self._may_give_up:
            done(f"the members of shard {self._shard} are being changed to {', '.join(self.wanted)}")
            return
        if self.wanted:
            self._give_up()
        if not members or len(set(members)) < len(members):
            done("expected different nodes as members")
        elif members == record.replicas:
            done("")
        else:
            self.wanted, self._done, self._step = list(members), done, ChangeStep.LEARNING

    @property
    def _may_give_up(self) -> bool:
        """Nobody was asked yet to decide with others: copies only learn, and one that never catches up holds nobody."""
        return self._step is ChangeStep.LEARNING and all(each.old_replicas is None for each in self._asked.values())

    def _give_up(self) -> None:
        wanted, done = self.wanted, self._done
        self.wanted, self._step, self._done = [], ChangeStep.NONE, lambda why: None
        done(f"another order has taken its place before {', '.join(wanted)} had learnt")

    def seen(self, view: View) -> None:
        self._replicas = view.replicas
        if self._shard < len(view.shards):
            self._take(view.shards[self._shard])
            self._is_lost = self._shard in view.epochs_back or self._is_earlier(view.shards[self._shard].record)

    def _is_earlier(self, found: ShardRecord) -> bool:
        """Of before this term, or of this very term and not what this leader wrote last."""
        own = self._record
        if found.epoch < own.epoch:
            return True
        if not found.term or found.term != own.term or found.claim in self._asked:
            return False
        return (found.replicas, found.old_replicas, found.learners) != (
            own.replicas,
            own.old_replicas,
            own.learners,
        )

    def claimed(self, message: Claimed) -> None:
        if message.request != self._request or self._claimed is None:
            return
        if message.now is not None:
            self._take(message.now)
        if message.known:
            self._claimed = None  # won: taken above; else the next look asks anew, of the record as it is

    def _take(self, now: Versioned) -> None:
        """The record, as the control plane has it."""
        record = now.record
        is_asked = record.claim in self._asked
        # A newer term is never replaced by this one, which ends as soon as the view is here.
        is_newer = not is_asked and record.epoch > self._replication.core.epoch
        self._revision = 0 if is_newer else now.revision
        if not is_asked:
            return
        self._asked.clear()  # the others name an older revision
        self._claimed = None
        if record.epoch > self._replication.core.epoch:
            self._state.promise(record.epoch, record.term, record.forced)  # opened once others have promised it, too
            self._replication.change(record.epoch, record)
        else:
            self._state.note_voters(noted(members_of(record, record.epoch)))
            self._replication.settle(record)

    def _look(self) -> None:
        self._timers.later(LOOK_SECONDS, self._look)
        self._looks += 1
        if self._looks * LOOK_SECONDS >= UNKNOWN_SECONDS:
            self._claimed = None  # of two changes of one revision, one at most is made
        if self._claimed is not None or not self._revision or not self._replication.core.is_open:
            return
        record = self._record
        if self._is_lost:
            self._claim(record, old_replicas=record.old_replicas)  # as it was, in the place of the old one
            return
        if not self.wanted:
            self._find_half_done(record)
        if self._step is ChangeStep.JOINING:  # the answer is there, or nobody has heard the question
            self._step = ChangeStep.SETTLING if record.old_replicas is not None else ChangeStep.LEARNING
        if self._step is ChangeStep.LEARNING:
            self._learn(record)
        elif self._step is ChangeStep.SETTLING:
            self._settle(record)

    def _find_half_done(self, record: ShardRecord) -> None:
        if record.old_replicas is not None:
            self.wanted, self._step = record.replicas, ChangeStep.SETTLING
        elif record.learners and len(record.replicas) < self._replicas:
            self.wanted = [*record.replicas, *record.learners][: self._replicas]
            self._step = ChangeStep.LEARNING
        elif record.learners:
            self._claim(record, learners=[])  # in whose place, only the last leader knew: it is ordered anew

    def _learn(self, record: ShardRecord) -> None:
        new = [each for each in self.wanted if each not in record.replicas]
        if record.learners != new:
            self._claim(record, learners=new)
            return
        behind = self._replication.core.behind()
        lacks = [behind.get(each) for each in new]
        if all(each is not None and each <= NEAR_RECORDS for each in lacks):
            self._step = ChangeStep.JOINING
            self._claim(
                record,
                epoch=record.epoch + 1,
                config=record.config + 1,
                replicas=self.wanted,
                old_replicas=record.replicas,
                learners=[],
            )

    def _settle(self, record: ShardRecord) -> None:
        if record.old_replicas is not None:
            self._claim(record, config=record.config + 1, old_replicas=None)
            return
        wanted, done = self.wanted, self._done
        self.wanted, self._step, self._done = [], ChangeStep.NONE, lambda why: None
        done("")
        node = self._replication.core.node
        if node not in wanted:
            self._replication.succession.hand_over(wanted[0], lambda why: None)

    def _claim(
        self, record: ShardRecord, *, epoch: int = 0, config: int = 0, replicas: list[str] | None = None,
        old_replicas: list[str] | None = None, learners: list[str] | None = None,
    ) -> None:  # fmt: skip
        claim = os.urandom(8).hex()
        replicas = record.replicas if replicas is None else replicas
        is_new = (replicas, old_replicas) != (record.replicas, record.old_replicas)
        wanted = structs.replace(
            record, epoch=epoch or record.epoch, claim=claim, replicas=replicas, old_replicas=old_replicas,
            learners=record.learners if learners is None else learners, term=claim if epoch else record.term,
            config=record.config + is_new,
        )  # fmt: skip
        self._request += 1
        if self._say(Claim(self._request, self._shard, self._revision, wanted)):
            self._claimed = self._asked[wanted.claim] = wanted
            self._looks = 0

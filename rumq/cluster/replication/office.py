"""How a replica takes office: poll, claim, fence, adopt, lead. Sans-IO. docs/replication.md, "Taking office"."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from math import inf

from msgspec import structs

from rumq.cluster.control.records import HANDED_OVER, Versioned
from rumq.cluster.replication import effects as fx
from rumq.cluster.replication import messages as m
from rumq.cluster.replication.adoption import Adoption, maybe_doubt
from rumq.cluster.replication.ports import CutRefused, LogCopies, ReplicaState
from rumq.cluster.replication.quorum import has_quorum, maybe_members, members_of, newest, noted

POLL_SECONDS = 0.15  # a peer that has not answered by then counts as one that hears the leader
RANK_SECONDS = 0.05  # C4: the next best waits so much longer
FIRST_SECONDS = 0.3  # ... for the first leader that a shard ever has
CLAIM_SECONDS = 5.0  # the agent answers sooner; until then nothing else is tried
# ... and for so long after it has answered that nobody knows: the record may settle it yet (C2). A later claim has an
# id of its own and names the same revision, so that one of the two at most comes into force.
UNKNOWN_SECONDS = 0.2
FENCE_SECONDS = 0.1  # peers that have not promised are asked again so often
FETCH_SECONDS = 10.0
UNSOUND_SECONDS = (
    2.0  # a majority has promised, and too many of it have doubted copies: others may still answer
)
DOUBT_SECONDS = 2.0  # until the next attempt, after one that ended in doubt
WAY_OUT = (
    "a disk or the control plane went back in time. Nobody leads the shard, and no copy is cut: start the replicas that"
    " are missing, with their disks, or choose one copy (rumqd cluster status --json has their ends and marks) with"
    " rumqd cluster force-leader"
)


class Step(Enum):
    NONE = auto()
    POLLING = auto()
    RANKED = auto()  # waits for its turn
    CLAIMING = auto()
    FENCING = auto()
    ADOPTING = auto()
    LEADS = auto()


class Office:
    """epoch, term: that it has claimed, 0 and "" for none; members: whose votes it needs, None before the first poll

    doubt: why the last attempt has ended without a leader, "" if it did not; not_before: until then nothing is tried"""

    def __init__(
        self, node: str, logs: LogCopies, state: ReplicaState, effects: list[fx.Effect], unique: Callable[[], str]
    ) -> None:  # fmt: skip
        self._node, self._logs, self._state, self._effects, self._unique = node, logs, state, effects, unique
        self.step = Step.NONE
        self.epoch = 0
        self.term = self.doubt = ""
        self.not_before = -inf
        self.members: m.Members | None = None
        self._told: m.Members | None = None  # the newest configuration that a peer has noted
        self._floor = 0  # the highest epoch that a peer has promised
        self._view: Versioned | None = None
        self._at = inf  # when this step goes on by itself
        self._fenced_at = 0.0
        self._beat_at = inf  # when those that have promised are told that this claimant lives
        self._polled: dict[str, m.Polled] = {}
        self._silent: set[str] = set()
        self._promised: dict[str, m.Promised] = {}
        self._adoption: Adoption | None = None

    @property
    def next_deadline(self) -> float:
        return min(self._at, self._beat_at)

    @property
    def is_taken(self) -> bool:
        """The claim is won: nobody else leads in this epoch."""
        return self.step in (Step.FENCING, Step.ADOPTING, Step.LEADS)

    def abandon(self) -> None:
        """Somebody else has taken office, or does."""
        self.step, self._at, self._beat_at, self.epoch, self.term = Step.NONE, inf, inf, 0, ""
        self._polled, self._silent, self._promised, self._adoption = {}, set(), {}, None

    # Poll

    def begin(self, view: Versioned, now: float, *, asked: bool = False) -> None:
        """There seems to be no leader. asked: the leader has asked for it, so nobody else needs to be"""
        self.abandon()
        self._view = view
        self.members = self._newest_members(view)
        if self._node not in self.members.voters:
            return
        if asked:
            self._claim_shard(now, HANDED_OVER)
            return
        self.step, self._at = Step.POLLING, now + POLL_SECONDS
        for peer in self._others():
            self._send(peer, m.Poll())
        self._rank(now)

    def _newest_members(self, view: Versioned) -> m.Members:
        """R2: of the record, or what replicas have noted since."""
        return newest(view.record, [maybe_members(self._state.voters), self._told])

    def _learn(self, members: m.Members | None) -> bool:
        """A peer has noted this configuration. returns: whether another one than the chosen one counts now"""
        if members is None or self._view is None:
            return False
        if self._told is None or (members.opened, members.config) > (self._told.opened, self._told.config):
            self._told = members
        before, self.members = self.members, self._newest_members(self._view)
        assert before is not None
        return (before.replicas, before.old_replicas) != (self.members.replicas, self.members.old_replicas)

    def _rank(self, now: float) -> None:
        """C4: claim only if a majority does not hear the leader; those with longer logs first."""
        assert self._view is not None and self.members is not None
        record = self._view.record
        deaf = [self._node, *(peer for peer, answer in self._polled.items() if not answer.hears_leader)]
        # The leader that is to be replaced is none of them: one that is stopped does not answer.
        others = [p for p in self._others() if p != record.leader]
        waits_for = [p for p in others if p not in self._polled and p not in self._silent]
        if waits_for and now < self._at:
            return
        if not has_quorum(self.members, deaf):
            self.abandon()
            return
        mine = (self._state.opened, sum(self._logs.ends().values()))
        order = self.members.voters
        better = [  # an answer may be late, of one that has no vote any more
            peer for peer, answer in self._polled.items()
            if peer in order and not answer.hears_leader and (
                (answer.opened, answer.records) > mine
                or ((answer.opened, answer.records) == mine and order.index(peer) < order.index(self._node))
            )
        ]  # fmt: skip
        if record.epoch:
            wait = RANK_SECONDS * len(better)
        else:
            wait = FIRST_SECONDS * order.index(self._node)  # all are blank, and some may not have started yet
        self.step, self._at = Step.RANKED, now + wait
        self._go_on(now)

    # Claim

    def _claim_shard(self, now: float, mark: str = "") -> None:
        """mark: before the claim's id"""
        assert self._view is not None and self.members is not None
        record, members = self._view.record, self.members
        # The record may be of before: the control plane is replaced from what the replicas know. R1
        self.epoch = max(record.epoch, self._state.promised, self._floor) + 1
        self.term = mark + self._unique()
        self.step, self._at = Step.CLAIMING, now + CLAIM_SECONDS
        wanted = structs.replace(
            record, epoch=self.epoch, leader=self._node, claim=self.term, term=self.term, replicas=members.replicas,
            old_replicas=members.old_replicas, config=members.config,
            learners=[each for each in record.learners if each not in members.voters],
            forced=max(record.forced, self._state.forced),
        )  # fmt: skip
        self._effects.append(fx.ClaimShard(self._view.revision, wanted))

    def claimed(self, won: bool, known: bool, view: Versioned | None, now: float) -> None:
        if self.step is not Step.CLAIMING:
            return
        if view is not None and view.record.claim == self.term:
            self._fence(view, now)  # C2: whatever was answered, the record is ours
        elif known:
            self.abandon()
        else:
            self._at = min(self._at, now + UNKNOWN_SECONDS)

    def seen(self, view: Versioned, now: float) -> None:
        if self.step is Step.CLAIMING and view.record.claim == self.term:
            self._fence(view, now)
            return
        record = view.record
        is_other = record.epoch > self.epoch or (
            record.epoch == self.epoch and record.term not in ("", self.term)
        )
        is_late = self.step in (Step.FENCING, Step.ADOPTING) and is_other
        if is_late or (self.step in (Step.POLLING, Step.RANKED) and self._view != view):
            self.abandon()

    # Fence

    def _fence(self, view: Versioned, now: float) -> None:
        """R2: a majority must promise this term, this replica too, before its log is chosen."""
        self._view = view
        self.step, self._at, self._fenced_at = Step.FENCING, now, now
        if view.record.forced > self._state.forced:
            self._logs.forget_marks()
            self._state.trust(view.record.forced)
        self._state.promise(self.epoch, self.term, view.record.forced)
        self._promised = {self._node: promised_here(self.epoch, self._state, self._logs)}
        self._beat_at = now + FENCE_SECONDS
        self._ask_to_promise(now)
        self._adopt(now)

    def _ask_to_promise(self, now: float) -> None:
        assert self._view is not None
        self._at = now + FENCE_SECONDS
        for peer in self._others():
            if peer not in self._promised:
                self._send(peer, m.Promise(self.epoch, self.term, self._view.record.forced))

    def _adopt(self, now: float) -> None:
        """R3: the longest logs among those with the highest opened epoch.

        R11: a copy that may have lost what it acknowledged is none of the majority that has everything."""
        assert self._view is not None and self.members is not None
        sound = [peer for peer, each in self._promised.items() if each.opened != m.DOUBTED]
        if not has_quorum(self.members, sound):
            return
        doubt = maybe_doubt(self._promised)
        if doubt is not None:
            self._give_up(doubt, now)
            return
        self.doubt = ""
        self._adoption = Adoption(
            self.epoch, self._node, self._promised, self._logs, self._state, self._effects
        )
        self.step, self._at = Step.ADOPTING, now + FETCH_SECONDS
        self._ask_for_next(now)

    def _wait_for_promises(self, now: float) -> None:
        assert self.members is not None
        doubted = [peer for peer, each in sorted(self._promised.items()) if each.opened == m.DOUBTED]
        if now - self._fenced_at >= UNSOUND_SECONDS and doubted and has_quorum(self.members, self._promised):
            self._give_up(f"the copies of {' '.join(doubted)} may lack what they had acknowledged", now)
        else:
            self._ask_to_promise(now)

    def _give_up(self, doubt: str, now: float) -> None:
        """Nobody may lead before an operator has looked, or those come back who know more."""
        if doubt != self.doubt:
            self._effects.append(fx.Alarm("cluster.copies_disagree", f"{doubt}: {WAY_OUT}"))
        self.abandon()
        self.doubt, self.not_before = doubt, now + DOUBT_SECONDS

    def _ask_for_next(self, now: float) -> None:
        assert self._adoption is not None and self._view is not None
        ask = self._adoption.next_question()
        if ask is not None:
            self._at = now + FETCH_SECONDS
            self._send(*ask)
            return
        self._logs.sync()
        ends = self._logs.ends()
        self._state.open(self.epoch, self.term, noted(members_of(self._view.record, self.epoch)))
        self.step, self._at, self._beat_at = Step.LEADS, inf, inf
        self._effects.append(fx.Lead(self.epoch, self._view.record, ends))

    # Events

    def answered(self, peer: str, message: m.ReplicaMessage, raw: memoryview, now: float) -> None:
        if isinstance(message, m.Outdated):
            if self.step in (Step.FENCING, Step.ADOPTING) and self._is_beaten(message):
                self._floor = max(self._floor, message.promised)
                self.abandon()
        elif isinstance(message, m.Polled) and self.step is Step.POLLING:
            self._floor = max(self._floor, message.promised)
            self._polled[peer] = message
            if self._learn(message.members):
                self.abandon()  # the next poll asks those who count
            else:
                self._rank(now)
        elif isinstance(message, m.Promised) and message.epoch == self.epoch:
            if self.step is Step.FENCING and self._learn(message.members):
                self.abandon()
            elif self.step is Step.FENCING:
                self._promised[peer] = message
                self._adopt(now)
        elif self.step is Step.ADOPTING and self._adoption is not None and not isinstance(message, m.Heard):
            try:
                is_last = self._adoption.took(peer, message, raw)
            except CutRefused as refused:
                self._give_up(str(refused), now)
                return
            if is_last:
                if self._adoption.is_short:
                    self._fence_again(now)
                else:
                    self._ask_for_next(now)
            elif peer == self._adoption.source:
                self._at = now + FETCH_SECONDS

    def _is_beaten(self, message: m.Outdated) -> bool:
        if message.promised == self.epoch:
            return message.term not in ("", self.term)
        return message.promised > self.epoch

    def unreachable(self, peer: str, now: float) -> None:
        if self.step is Step.POLLING:
            # A process that is gone hears nobody; it has no vote in this either, but is not waited for.
            self._silent.add(peer)
            self._rank(now)
        elif self.step is Step.FENCING:
            self._promised.pop(peer, None)  # its next process may have less
        elif self.step is Step.ADOPTING and self._adoption is not None and self._adoption.source == peer:
            self._fence_again(now)

    def _fence_again(self, now: float) -> None:
        """The replica with the best log has gone while it was read: choose anew, from those that are there."""
        assert self._view is not None
        self._adoption = None
        self._logs.sync()
        self._fence(self._view, now)

    def tick(self, now: float) -> None:
        if now >= self._beat_at:
            # R14: a claimant that fetches for long is waited for.
            self._beat_at = now + FENCE_SECONDS
            for peer in self._promised:
                if peer != self._node:
                    self._send(peer, m.Beat(self.epoch, {}))
        if now >= self._at:
            self._go_on(now)

    def _go_on(self, now: float) -> None:
        if now < self._at:
            return
        if self.step is Step.POLLING:
            self._rank(now)
        elif self.step is Step.RANKED:
            self._claim_shard(now)
        elif self.step is Step.CLAIMING:
            self.abandon()
        elif self.step is Step.FENCING:
            self._wait_for_promises(now)
        elif self.step is Step.ADOPTING:
            self._fence_again(now)

    def _others(self) -> list[str]:
        assert self.members is not None
        return [each for each in self.members.voters if each != self._node]

    def _send(self, peer: str, message: m.ReplicaMessage) -> None:
        self._effects.append(fx.Send(peer, message))


def promised_here(epoch: int, state: ReplicaState, logs: LogCopies) -> m.Promised:
    """What a replica says of itself once it has promised."""
    members = maybe_members(state.voters)
    return m.Promised(
        epoch, state.opened, logs.ends(), state.opened_term, members, logs.marks(), state.forgets
    )

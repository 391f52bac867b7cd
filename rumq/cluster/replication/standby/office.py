"""How a replica takes office: poll, claim, fence, adopt, lead. Sans-IO.

docs/explanation/replication.md, "Taking office"."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from math import inf

from msgspec import structs

from rumq.cluster.control.records import HANDED_OVER, Versioned
from rumq.cluster.replication import effects as fx
from rumq.cluster.replication import messages as m
from rumq.cluster.replication.ports import CutRefused, LogCopies, ReplicaState
from rumq.cluster.replication.quorum import has_quorum, maybe_members, members_of, noted
from rumq.cluster.replication.standby.adoption import Adoption, maybe_doubt
from rumq.cluster.replication.standby.claimed_term import ClaimedTerm, Promises
from rumq.cluster.replication.standby.electorate import Electorate
from rumq.cluster.replication.standby.poll_answers import PollAnswers

POLL_SECONDS = 0.15  # a peer that has not answered by then counts as one that hears the leader
RANK_SECONDS = 0.05  # C4: the next best waits so much longer
FIRST_SECONDS = 0.3  # the same for the first leader that a shard ever has
CLAIM_SECONDS = 5.0  # the agent answers sooner; until then nothing else is tried
# ... and for so long after it has answered that nobody knows: the record may settle it yet (C2). A later claim has an
# id of its own and names the same revision, so that one of the two at most comes into force.
UNKNOWN_SECONDS = 0.2
FENCE_SECONDS = 0.1  # peers that have not promised are asked again so often
FETCH_SECONDS = 10.0
UNSOUND_SECONDS = 2.0  # a majority has promised, and too many of it have doubted copies: others may still answer
DOUBT_SECONDS = 2.0  # until the next attempt, after one that ended in doubt
WAY_OUT = (
    "a disk or the control plane went back in time. Nobody leads the shard, and no copy is cut: start the replicas that"
    " are missing, with their disks, or choose one copy (rumqd cluster status --json has their ends and marks) with"
    " rumqd cluster force-leader"
)


class OfficeStep(Enum):
    NONE = auto()
    POLLING = auto()
    RANKED = auto()  # waits for its turn
    CLAIMING = auto()
    FENCING = auto()
    ADOPTING = auto()
    LEADS = auto()


class Office:
    """claim: the term that it has claimed

    doubt: why the last attempt has ended without a leader, "" if it did not; not_before: until then nothing is tried"""

    def __init__(
        self, node: str, logs: LogCopies, state: ReplicaState, effects: list[fx.Effect], unique: Callable[[], str]
    ) -> None:
        self._node, self._logs, self._state, self._effects, self._unique = node, logs, state, effects, unique
        self.step = OfficeStep.NONE
        self.claim = ClaimedTerm()
        self.doubt = ""
        self.not_before = -inf
        self._electorate = Electorate(state)
        self._view: Versioned | None = None
        self._at = inf  # monotonic seconds at which this step goes on by itself
        self._poll = PollAnswers(node)
        self._promises = Promises()
        self._adoption: Adoption | None = None

    @property
    def next_deadline(self) -> float:
        return min(self._at, self._promises.beat_at)

    @property
    def is_taken(self) -> bool:
        """The claim is won: nobody else leads in this epoch."""
        return self.step in (OfficeStep.FENCING, OfficeStep.ADOPTING, OfficeStep.LEADS)

    def abandon(self) -> None:
        """Somebody else has taken office, or does."""
        self.step, self._at, self.claim = OfficeStep.NONE, inf, ClaimedTerm()
        self._poll, self._promises, self._adoption = PollAnswers(self._node), Promises(), None

    # Poll

    def begin(self, view: Versioned, now: float, *, asked: bool = False) -> None:
        """There seems to be no leader. asked: the leader has asked for it, so nobody else needs to be"""
        self.abandon()
        self._view = view
        if self._node not in self._electorate.begin(view.record).voters:
            return
        if asked:
            self._claim_shard(now, HANDED_OVER)
            return
        self.step, self._at = OfficeStep.POLLING, now + POLL_SECONDS
        for peer in self._electorate.others(self._node):
            self._send(peer, m.Poll())
        self._rank(now)

    def _learn(self, members: m.Members | None) -> bool:
        """A peer has noted this configuration. returns: whether another one than the chosen one counts now"""
        assert self._view is not None
        return self._electorate.learn(members, self._view.record)

    def _rank(self, now: float) -> None:
        """C4: claim only if a majority does not hear the leader; those with longer logs first."""
        members = self._electorate.members
        assert self._view is not None and members is not None
        record = self._view.record
        # The leader that is to be replaced is none of them: one that is stopped does not answer.
        others = [peer for peer in self._electorate.others(self._node) if peer != record.leader]
        if not self._poll.are_complete(others) and now < self._at:
            return
        if not has_quorum(members, self._poll.deaf()):
            self.abandon()
            return
        order = members.voters
        better = self._poll.better(order, (self._state.opened, sum(self._logs.ends().values())))
        if record.epoch:
            wait = RANK_SECONDS * len(better)
        else:
            wait = FIRST_SECONDS * order.index(self._node)  # all are blank, and some may not have started yet
        self.step, self._at = OfficeStep.RANKED, now + wait
        self._go_on(now)

    # Claim

    def _claim_shard(self, now: float, mark: str = "") -> None:
        """mark: before the claim's id"""
        members = self._electorate.members
        assert self._view is not None and members is not None
        record = self._view.record
        # The record may be of before: the control plane is replaced from what the replicas know. R1
        epoch = max(record.epoch, self._state.promised, self._electorate.floor) + 1
        self.claim = ClaimedTerm(epoch, mark + self._unique())
        self.step, self._at = OfficeStep.CLAIMING, now + CLAIM_SECONDS
        wanted = structs.replace(
            record, epoch=epoch, leader=self._node, claim=self.claim.term, term=self.claim.term,
            replicas=members.replicas, old_replicas=members.old_replicas, config=members.config,
            learners=[each for each in record.learners if each not in members.voters],
            forced=max(record.forced, self._state.forced),
        )  # fmt: skip
        self._effects.append(fx.ClaimShard(self._view.revision, wanted))

    def claimed(self, won: bool, known: bool, view: Versioned | None, now: float) -> None:
        if self.step is not OfficeStep.CLAIMING:
            return
        if view is not None and view.record.claim == self.claim.term:
            self._fence(view, now)  # C2: whatever was answered, the record is ours
        elif known:
            self.abandon()
        else:
            self._at = min(self._at, now + UNKNOWN_SECONDS)

    def seen(self, view: Versioned, now: float) -> None:
        if self.step is OfficeStep.CLAIMING and view.record.claim == self.claim.term:
            self._fence(view, now)
            return
        is_late = self.step in (OfficeStep.FENCING, OfficeStep.ADOPTING) and self.claim.is_replaced(view.record)
        if is_late or (self.step in (OfficeStep.POLLING, OfficeStep.RANKED) and self._view != view):
            self.abandon()

    # Fence

    def _fence(self, view: Versioned, now: float) -> None:
        """R2: a majority must promise this term, this replica too, before its log is chosen."""
        self._view = view
        self.step, self._at = OfficeStep.FENCING, now
        epoch, term = self.claim
        if view.record.forced > self._state.forced:
            self._logs.forget_marks()
            self._state.trust(view.record.forced)
        self._state.promise(epoch, term, view.record.forced)
        self._promises.by_node = {self._node: promised_here(epoch, self._state, self._logs)}
        self._promises.began_at, self._promises.beat_at = now, now + FENCE_SECONDS
        self._ask_to_promise(now)
        self._adopt(now)

    def _ask_to_promise(self, now: float) -> None:
        assert self._view is not None
        self._at = now + FENCE_SECONDS
        for peer in self._electorate.others(self._node):
            if peer not in self._promises.by_node:
                self._send(peer, m.Promise(*self.claim, self._view.record.forced))

    def _adopt(self, now: float) -> None:
        """R3: the longest logs among those with the highest opened epoch.

        R11: a copy that may have lost what it acknowledged is none of the majority that has everything."""
        members, promised = self._electorate.members, self._promises.by_node
        assert members is not None
        sound = [peer for peer, each in promised.items() if each.opened != m.DOUBTED]
        if not has_quorum(members, sound):
            return
        doubt = maybe_doubt(promised)
        if doubt is not None:
            self._give_up(doubt, now)
            return
        self.doubt = ""
        self._adoption = Adoption(self.claim.epoch, self._node, promised, self._logs, self._state, self._effects)
        self.step, self._at = OfficeStep.ADOPTING, now + FETCH_SECONDS
        self._ask_for_next(now)

    def _wait_for_promises(self, now: float) -> None:
        members, promised = self._electorate.members, self._promises.by_node
        assert members is not None
        doubted = [peer for peer, each in sorted(promised.items()) if each.opened == m.DOUBTED]
        if now - self._promises.began_at >= UNSOUND_SECONDS and doubted and has_quorum(members, promised):
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
        epoch, term = self.claim
        self._state.open(epoch, term, noted(members_of(self._view.record, epoch)))
        self.step, self._at, self._promises.beat_at = OfficeStep.LEADS, inf, inf
        self._effects.append(fx.Lead(epoch, self._view.record, ends))

    # Events

    def answered(self, peer: str, message: m.ReplicaMessage, raw: memoryview, now: float) -> None:
        if isinstance(message, m.Outdated):
            if self.step in (OfficeStep.FENCING, OfficeStep.ADOPTING) and self.claim.is_beaten(message):
                self._electorate.promised(message.promised)
                self.abandon()
        elif isinstance(message, m.Polled) and self.step is OfficeStep.POLLING:
            self._electorate.promised(message.promised)
            self._poll.answered(peer, message)
            if self._learn(message.members):
                self.abandon()  # the next poll asks those who count
            else:
                self._rank(now)
        elif isinstance(message, m.Promised) and message.epoch == self.claim.epoch:
            if self.step is OfficeStep.FENCING and self._learn(message.members):
                self.abandon()
            elif self.step is OfficeStep.FENCING:
                self._promises.by_node[peer] = message
                self._adopt(now)
        elif self.step is OfficeStep.ADOPTING and self._adoption is not None and not isinstance(message, m.Heard):
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

    def unreachable(self, peer: str, now: float) -> None:
        if self.step is OfficeStep.POLLING:
            self._poll.unreachable(peer)
            self._rank(now)
        elif self.step is OfficeStep.FENCING:
            self._promises.by_node.pop(peer, None)  # its next process may have less
        elif self.step is OfficeStep.ADOPTING and self._adoption is not None and self._adoption.source == peer:
            self._fence_again(now)

    def _fence_again(self, now: float) -> None:
        """The replica with the best log has gone while it was read: choose anew, from those that are there."""
        assert self._view is not None
        self._adoption = None
        self._logs.sync()
        self._fence(self._view, now)

    def tick(self, now: float) -> None:
        if now >= self._promises.beat_at:
            # R14: a claimant that fetches for long is waited for.
            self._promises.beat_at = now + FENCE_SECONDS
            for peer in self._promises.by_node:
                if peer != self._node:
                    self._send(peer, m.Beat(self.claim.epoch, {}))
        if now >= self._at:
            self._go_on(now)

    def _go_on(self, now: float) -> None:
        if now < self._at:
            return
        if self.step is OfficeStep.POLLING:
            self._rank(now)
        elif self.step is OfficeStep.RANKED:
            self._claim_shard(now)
        elif self.step is OfficeStep.CLAIMING:
            self.abandon()
        elif self.step is OfficeStep.FENCING:
            self._wait_for_promises(now)
        elif self.step is OfficeStep.ADOPTING:
            self._fence_again(now)

    def _send(self, peer: str, message: m.ReplicaMessage) -> None:
        self._effects.append(fx.Send(peer, message))


def promised_here(epoch: int, state: ReplicaState, logs: LogCopies) -> m.Promised:
    """What a replica says of itself once it has promised."""
    members = maybe_members(state.voters)
    return m.Promised(epoch, state.opened, logs.ends(), state.opened_term, members, logs.marks(), state.forgets)

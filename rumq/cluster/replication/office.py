"""How a replica takes office: poll, claim, fence, adopt, lead. Sans-IO. docs/replication.md, "Taking office"."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from math import inf

from rumq.cluster.control.records import HANDED_OVER, ShardRecord, Versioned
from rumq.cluster.replication import effects as fx
from rumq.cluster.replication import messages as m
from rumq.cluster.replication.adoption import Adoption
from rumq.cluster.replication.ports import LogCopies, ReplicaState
from rumq.cluster.replication.quorum import has_quorum

POLL_SECONDS = 0.15  # a peer that has not answered by then counts as one that hears the leader
RANK_SECONDS = 0.05  # C4: the next best waits so much longer
FIRST_SECONDS = 0.3  # ... for the first leader that a shard ever has
CLAIM_SECONDS = 5.0  # an unknown outcome is settled by the record; until then nothing else is tried
FENCE_SECONDS = 0.1  # peers that have not promised are asked again so often
FETCH_SECONDS = 10.0


class Step(Enum):
    NONE = auto()
    POLLING = auto()
    RANKED = auto()  # waits for its turn
    CLAIMING = auto()
    FENCING = auto()
    ADOPTING = auto()
    LEADS = auto()


class Office:
    """epoch: that it has claimed, 0 for none"""

    def __init__(
        self, node: str, logs: LogCopies, state: ReplicaState, effects: list[fx.Effect], unique: Callable[[], str]
    ) -> None:  # fmt: skip
        self._node, self._logs, self._state, self._effects, self._unique = node, logs, state, effects, unique
        self.step = Step.NONE
        self.epoch = 0
        self._view: Versioned | None = None
        self._claim = ""
        self._at = inf  # when this step goes on by itself
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
        self.step, self._at, self._beat_at, self.epoch = Step.NONE, inf, inf, 0
        self._polled, self._silent, self._promised, self._adoption = {}, set(), {}, None

    # Poll

    def begin(self, view: Versioned, now: float, *, asked: bool = False) -> None:
        """There seems to be no leader. asked: the leader has asked for it, so nobody else needs to be"""
        self.abandon()
        self._view = view
        if asked:
            self._claim_shard(now, HANDED_OVER)
            return
        self.step, self._at = Step.POLLING, now + POLL_SECONDS
        for peer in self._others(view.record):
            self._send(peer, m.Poll())
        self._rank(now)

    def _rank(self, now: float) -> None:
        """C4: claim only if a majority does not hear the leader; those with longer logs first."""
        assert self._view is not None
        record = self._view.record
        deaf = [self._node, *(peer for peer, answer in self._polled.items() if not answer.hears_leader)]
        waits_for = [p for p in self._others(record) if p not in self._polled and p not in self._silent]
        if waits_for and now < self._at:
            return
        if not has_quorum(record, deaf):
            self.abandon()
            return
        mine = (self._state.opened, sum(self._logs.ends().values()))
        order = record.voters
        better = [
            peer for peer, answer in self._polled.items()
            if not answer.hears_leader and (
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
        assert self._view is not None
        record = self._view.record
        if record.epoch < self._state.promised:
            self.abandon()  # a view that is late; or the control plane has gone back: its members may be old ones
            return
        self._claim = mark + self._unique()
        self.epoch = record.epoch + 1
        self.step, self._at = Step.CLAIMING, now + CLAIM_SECONDS
        wanted = ShardRecord(
            epoch=self.epoch, leader=self._node, claim=self._claim, replicas=record.replicas,
            old_replicas=record.old_replicas, learners=record.learners,
        )  # fmt: skip
        self._effects.append(fx.ClaimShard(self._view.revision, wanted))

    def claimed(self, won: bool, known: bool, view: Versioned | None, now: float) -> None:
        if self.step is not Step.CLAIMING:
            return
        if view is not None and view.record.claim == self._claim:
            self._fence(view, now)  # C2: whatever was answered, the record is ours
        elif known:
            self.abandon()

    def seen(self, view: Versioned, now: float) -> None:
        if self.step is Step.CLAIMING and view.record.claim == self._claim:
            self._fence(view, now)
            return
        is_late = self.step in (Step.FENCING, Step.ADOPTING) and view.record.epoch > self.epoch
        if is_late or (self.step in (Step.POLLING, Step.RANKED) and self._view != view):
            self.abandon()

    # Fence

    def _fence(self, view: Versioned, now: float) -> None:
        """R2: a majority must promise this epoch, this replica too, before its log is chosen."""
        self._view = view
        self.step, self._at = Step.FENCING, now
        self._state.promise(self.epoch)
        self._promised = {self._node: m.Promised(self.epoch, self._state.opened, self._logs.ends())}
        self._beat_at = now + FENCE_SECONDS
        self._ask_to_promise(now)
        self._adopt(now)

    def _ask_to_promise(self, now: float) -> None:
        assert self._view is not None
        self._at = now + FENCE_SECONDS
        for peer in self._others(self._view.record):
            if peer not in self._promised:
                self._send(peer, m.Promise(self.epoch))

    def _adopt(self, now: float) -> None:
        """R3: the longest logs among those with the highest opened epoch.

        R11: a copy that may have lost what it acknowledged is none of the majority that has everything."""
        assert self._view is not None
        sound = [peer for peer, each in self._promised.items() if each.opened != m.DOUBTED]
        if not has_quorum(self._view.record, sound):
            return
        self._adoption = Adoption(self.epoch, self._node, self._promised, self._logs)
        self.step, self._at = Step.ADOPTING, now + FETCH_SECONDS
        self._ask_for_next(now)

    def _ask_for_next(self, now: float) -> None:
        assert self._adoption is not None and self._view is not None
        ask = self._adoption.next_question()
        if ask is not None:
            self._at = now + FETCH_SECONDS
            self._send(*ask)
            return
        self._logs.sync()
        ends = self._logs.ends()
        self._state.open(self.epoch)
        self.step, self._at, self._beat_at = Step.LEADS, inf, inf
        self._effects.append(fx.Lead(self.epoch, self._view.record, ends))

    # Events

    def answered(self, peer: str, message: m.ReplicaMessage, raw: memoryview, now: float) -> None:
        if isinstance(message, m.Outdated):
            if message.promised > self.epoch and self.step in (Step.FENCING, Step.ADOPTING):
                self.abandon()
        elif isinstance(message, m.Polled) and self.step is Step.POLLING:
            self._polled[peer] = message
            self._rank(now)
        elif isinstance(message, m.Promised) and message.epoch == self.epoch:
            if self.step is Step.FENCING:
                self._promised[peer] = message
                self._adopt(now)
        elif self.step is Step.ADOPTING and self._adoption is not None and not isinstance(message, m.Heard):
            if self._adoption.took(peer, message, raw):
                self._ask_for_next(now)
            elif peer == self._adoption.source:
                self._at = now + FETCH_SECONDS

    def unreachable(self, peer: str, now: float) -> None:
        if self.step is Step.POLLING:
            # A process that is gone hears nobody; it has no vote in this either, but is not waited for.
            self._silent.add(peer)
            self._rank(now)
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
            self._ask_to_promise(now)
        elif self.step is Step.ADOPTING:
            self._fence_again(now)

    def _others(self, record: ShardRecord) -> list[str]:
        return [each for each in record.voters if each != self._node]

    def _send(self, peer: str, message: m.ReplicaMessage) -> None:
        self._effects.append(fx.Send(peer, message))

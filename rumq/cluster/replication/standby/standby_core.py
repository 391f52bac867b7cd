"""A replica of a shard that does not lead: it follows the leader, and takes office when there is none. Sans-IO.

docs/explanation/replication.md has the rules by number; each is named here where it is kept. What is written goes to a
port (`LogCopies`), what is promised to another (`ReplicaState`), both of which are on disk when they return."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from rumq.cluster.control.records import ShardRecord, Versioned
from rumq.cluster.replication import effects as fx
from rumq.cluster.replication import messages as m
from rumq.cluster.replication.majority_lease import NOT_LEASED
from rumq.cluster.replication.ports import LogCopies, ReplicaState
from rumq.cluster.replication.quorum import maybe_members, noted
from rumq.cluster.replication.standby.disk_fitness import DiskFitness
from rumq.cluster.replication.standby.epoch_watch import EpochWatch
from rumq.cluster.replication.standby.followed_leader import FollowedLeader
from rumq.cluster.replication.standby.leader_silence import LeaderSilence
from rumq.cluster.replication.standby.office import Office, OfficeStep, promised_here

NOTE_SECONDS = 1.0  # between two notes on disk of what is committed


class StandbyCore:
    """effects: taken with `take_effects`. is_leading: it has taken office, and hears nothing more"""

    def __init__(
        self, node: str, logs: LogCopies, state: ReplicaState, *, patience: Callable[[], float],
        unique: Callable[[], str], now: float, is_well: Callable[[], bool] = lambda: True,
        can_lead: Callable[[], bool] = lambda: True,
    ) -> None:  # fmt: skip
        """node: its id; patience: draws from PATIENCE_SECONDS; unique: an id for a claim; now: monotonic seconds

        is_well: whether its disk is, as far as is known; can_lead: ... and was tried just now. R10"""
        self.node, self._logs, self._state = node, logs, state
        self.view: Versioned | None = None
        self.is_current = False
        self.is_leading = False
        self._effects: list[fx.Effect] = []
        self._leader = FollowedLeader(logs, state, self._effects)
        self._silence = LeaderSilence(patience, now, has_promised=bool(state.promised))
        self._disk = DiskFitness(is_well, can_lead, self._effects)
        self._epochs = EpochWatch()
        self._held: dict[int, m.Promise] = {}  # by link; answered once the hold is over
        self._office = Office(node, logs, state, self._effects, unique)
        self._note_at = now + NOTE_SECONDS

    def take_effects(self) -> list[fx.Effect]:
        effects = list(self._effects)
        self._effects.clear()
        return effects

    @property
    def record(self) -> ShardRecord | None:
        return self.view.record if self.view is not None else None

    def hears_leader(self, now: float) -> bool:
        return self._silence.hears_leader(now)

    def _hears(self, now: float) -> None:
        self._silence.heard(now)
        self._disk.others_lead()

    # The control plane

    def seen(self, view: Versioned | None, is_current: bool, now: float) -> None:
        """What the agent says of this shard."""
        self.is_current = is_current
        if view is not None:
            self.view = view
            self._silence.seen(view.record, now)
            self._office.seen(view, now)
            promised = self._state.promised
            alarm = self._epochs.maybe_alarm(view.record.epoch, promised, now, is_current=is_current)
            if alarm is not None:
                self._effects.append(alarm)
            if view.record.leader == self.node and view.record.epoch >= promised:
                self._silence.was_itself(in_this_epoch=view.record.epoch == promised)
        self.tick(now)

    def claimed(self, won: bool, known: bool, view: Versioned | None, now: float) -> None:
        """The result of `ClaimShard`. known: False if nobody knows whether it was applied"""
        if view is not None:
            self.view = view
        self._office.claimed(won, known, view, now)
        self._take_office()

    # Time

    @property
    def next_deadline(self) -> float:
        if self.is_leading:
            return inf
        held_until = self._silence.held_until if self._held else inf
        return min(self._silence.try_at, self._note_at, self._office.next_deadline, held_until)

    def tick(self, now: float) -> None:
        """Monotonic seconds; call it at `next_deadline`."""
        if self.is_leading:
            return
        self._promise_held(now)
        self._office.tick(now)
        self._take_office()
        self._note_copies(now)
        record = self.record
        if not self._silence.is_due(now, is_free=record is not None and record.leader in ("", self.node)):
            return
        if self._office.step is not OfficeStep.NONE or self.view is None or not self.is_current:
            return
        if self._state.opened == m.DOUBTED and not self._is_chosen(self.view.record):
            return  # R11
        if now >= self._office.not_before and not self.hears_leader(now) and self._disk.may_lead(now):
            self._office.begin(self.view, now)
            self._take_office()

    def _is_chosen(self, record: ShardRecord) -> bool:
        """An operator has forced this node to lead, whatever its copy lacks."""
        return record.forced > self._state.forced and self.node in record.replicas

    def _note_copies(self, now: float) -> None:
        """Now and then: a copy that comes back without what was committed is found by it."""
        if now >= self._note_at:
            self._note_at = now + NOTE_SECONDS
            if self._state.opened != m.DOUBTED:
                self.flush()
                self._state.note_copies(self._logs.marks(), self._logs.holdings())

    # What comes over links

    def received(self, link: int, message: m.ReplicaMessage, raw: memoryview, now: float) -> None:
        """From a claimant or a leader, who has dialled. raises: OSError, LogError: this replica cannot go on"""
        if isinstance(message, m.Poll):
            records = sum(self._logs.ends().values())
            hears = self.hears_leader(now) or self._office.is_taken
            members = maybe_members(self._state.voters)
            self._reply(link, m.Polled(hears, self._state.promised, self._state.opened, records, members))
        elif isinstance(message, m.Promise):
            self._hold_or_promise(link, message, now)
        elif isinstance(message, m.FetchCopy):
            if message.epoch != self._state.promised or self._state.opened == m.DOUBTED:
                self._outdated(link)  # what it had promised with may be gone: R11
            else:
                self._effects.append(fx.Serve(link, message.epoch, message.partition, message.have))
        elif link != self._leader.link or getattr(message, "epoch", -1) != self._state.promised:
            self._outdated(link)  # R5, R9
        elif self._held:
            # Somebody has won a higher epoch. The link stays: its end will tell that this leader has ended.
            self._leader.has_missed = True
            self._reply(link, m.Outdated(max(each.epoch for each in self._held.values())))
        elif self._leader.has_missed:
            self._outdated(link)  # R5: it begins anew with a comparison
        else:
            self._hears(now)
            if self._office.step in (OfficeStep.POLLING, OfficeStep.RANKED):
                self._office.abandon()  # it lives
            self._follow(link, message, raw, now)

    def _hold_or_promise(self, link: int, message: m.Promise, now: float) -> None:
        """R15: while a leader may hold the lease of the majority by this replica's answer, nobody else is promised."""
        is_newer = message.epoch > self._state.promised and link != self._leader.link
        if is_newer and now < self._silence.held_until:
            self._held[link] = message
            self._office.abandon()
        else:
            self._promise(link, message, now)

    def _promise_held(self, now: float) -> None:
        if self._held and now >= self._silence.held_until:
            held, self._held = self._held, {}
            for link, message in sorted(held.items(), key=lambda each: (-each[1].epoch, each[0])):
                self._promise(link, message, now)

    def _promise(self, link: int, message: m.Promise, now: float) -> None:
        """R2: listen to no other leader of this or an older epoch; what was written is synced before the answer."""
        epoch = message.epoch
        if epoch < self._state.promised or self._is_of_another(message):
            self._outdated(link)
            return
        if self._state.opened == m.DOUBTED and self.record is not None and epoch < self.record.epoch:
            # R11: what it had promised may be forgotten as well; in the epoch of the record it may promise anew.
            self._reply(link, m.Outdated(self.record.epoch), is_last=True)
            return
        if self._office.is_taken and epoch == self._office.claim.epoch:
            self._outdated(link)
            return
        # While this replica's own claim is out: whoever has won that epoch, or leads in the one before, is followed.
        self._office.abandon()
        self.flush()
        self._logs.sync()  # what is left of an adoption that was given up is acknowledged to nobody
        if message.forced > self._state.forced:
            self._logs.forget_marks()
        self._state.promise(epoch, message.term, message.forced)
        self._leader.follow(link)
        self._hears(now)
        self._reply(link, promised_here(epoch, self._state, self._logs))

    def _is_of_another(self, message: m.Promise) -> bool:
        """Its epoch was promised to another claim: the control plane gave it out twice."""
        known = self._state.promised_term
        return message.epoch == self._state.promised and "" not in (known, message.term) and known != message.term

    def _follow(self, link: int, message: m.ReplicaMessage, raw: memoryview, now: float) -> None:
        epoch = self._state.promised
        if not isinstance(message, m.Beat):
            self._leader.is_fed = True
            self._leader.take(message, raw)
        if isinstance(message, m.Beat):
            if self._state.opened == epoch:  # else its records may be others than those that are committed
                for partition, lsn in message.committed.items():
                    self._logs.note_committed(partition, lsn)
                if message.members is not None:
                    self._state.note_voters(noted(message.members))
            # A claim that is out may be won at any time, and this replica promises it at once.
            count = message.count if self._office.step is OfficeStep.NONE else NOT_LEASED
            self._reply(link, m.Heard(epoch, self._disk.is_well(), count))
        elif isinstance(message, m.Succeed) and self.view is not None and self._disk.is_well():
            self.flush()
            self._leader.link = None
            self._office.begin(self.view, now, asked=True)
            self._take_office()

    def flush(self) -> None:
        """Sync what came, and acknowledge it: R6. Call it when nothing more is to be read at once."""
        self._leader.flush()

    def lost(self, link: int, now: float, *, ended_there: bool = True) -> None:
        """A link that another process has dialled has ended. ended_there: that process has closed it, or is gone"""
        self._held.pop(link, None)
        if link == self._leader.link:
            self.flush()
            self._leader.link = None
            if self._leader.is_fed and ended_there:  # a claimant that has become the leader dials anew
                self._silence.ended(now)
            self.tick(now)

    # Answers of peers

    def answered(self, peer: str, message: m.ReplicaMessage, raw: memoryview, now: float) -> None:
        """From a peer that this replica has asked. raises: OSError, LogError"""
        self._office.answered(peer, message, raw, now)
        self._take_office()

    def unreachable(self, peer: str, now: float) -> None:
        """A peer that was asked cannot be reached, or its link has ended."""
        self._office.unreachable(peer, now)
        self._take_office()

    def _take_office(self) -> None:
        if self._office.is_taken:
            self._leader.link = None  # what it says is of an older epoch
        if self._office.step is OfficeStep.LEADS:
            self.is_leading = True

    def _outdated(self, link: int) -> None:
        self._reply(link, m.Outdated(self._state.promised, self._state.promised_term), is_last=True)

    def _reply(self, link: int, message: m.ReplicaMessage, *, is_last: bool = False) -> None:
        self._effects.append(fx.Reply(link, message, is_last))

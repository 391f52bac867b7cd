"""A replica of a shard that does not lead: it follows the leader, and takes office when there is none. Sans-IO.

docs/replication.md has the rules by number; each is named here where it is kept. What is written goes to a port
(`LogCopies`), what is promised to another (`ReplicaState`), both of which are on disk when they return."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from rumq.cluster.control.records import ShardRecord, Versioned
from rumq.cluster.replication import effects as fx
from rumq.cluster.replication import messages as m
from rumq.cluster.replication.copy_change import change_copy
from rumq.cluster.replication.election_backoff import ElectionBackoff
from rumq.cluster.replication.majority_lease import HOLD_SECONDS, NOT_LEASED
from rumq.cluster.replication.office import WAY_OUT, Office, Step, promised_here
from rumq.cluster.replication.ports import CutRefused, DataFrame, LogCopies, ReplicaState
from rumq.cluster.replication.quorum import maybe_members, noted

PATIENCE_SECONDS = (HOLD_SECONDS, 0.9)  # a leader silent for so long may be gone; chosen anew for each wait
BEHIND_SECONDS = 5.0
NOTE_SECONDS = 1.0  # what is committed is noted on disk so often
UNWELL_SECONDS = 3.0  # so much longer one waits whose disk is full or slow: others may be better


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
        self._patience, self._is_well, self._can_lead = patience, is_well, can_lead
        self._unwell_since: float | None = None
        self.view: Versioned | None = None
        self.is_current = False
        self.is_leading = False
        self._effects: list[fx.Effect] = []
        self._leader: int | None = None  # the link of the leader that it follows
        # R15: a run before this one may have answered a beat just now.
        self._began_at = self._heard_at = now if state.promised else -inf
        self._held: dict[int, m.Promise] = {}  # by link; answered once the hold is over
        self._elections = ElectionBackoff()
        self._has_missed = False  # frames of the leader, while a promise was held
        self._try_at = now + patience()  # the next attempt to take office, if nothing is heard
        self._is_eager = True  # a leader that is not named, or was this node, is not waited for
        self._is_dirty = False
        self._is_fed = False  # the leader has sent more than its claim
        self._office = Office(node, logs, state, self._effects, unique)
        self._behind_since: float | None = None
        self._note_at = now + NOTE_SECONDS

    def take_effects(self) -> list[fx.Effect]:
        effects = list(self._effects)
        self._effects.clear()
        return effects

    @property
    def record(self) -> ShardRecord | None:
        return self.view.record if self.view is not None else None

    @property
    def is_following(self) -> bool:
        return self._leader is not None

    def hears_leader(self, now: float) -> bool:
        return now - self._heard_at < PATIENCE_SECONDS[0] * self._elections.stretch

    def _hears(self, now: float) -> None:
        self._elections.calm(now)
        wait = self._patience() * self._elections.stretch
        self._heard_at, self._try_at, self._is_eager = now, now + wait, False
        self._unwell_since = None

    # The control plane

    def seen(self, view: Versioned | None, is_current: bool, now: float) -> None:
        """What the agent says of this shard."""
        self.is_current = is_current
        if view is not None:
            self.view = view
            self._elections.seen(view.record, now)
            self._office.seen(view, now)
            self._watch_epoch(view.record.epoch, now)
            if view.record.leader == self.node and view.record.epoch >= self._state.promised:
                self._is_eager = True  # of a claim that was given up, or of a run before: nobody leads
                if self._heard_at == self._began_at and view.record.epoch == self._state.promised:
                    self._heard_at = -inf  # whom the run before has heard last was itself
        self.tick(now)

    def _watch_epoch(self, epoch: int, now: float) -> None:
        """An epoch goes back only where the control plane has lost what it knew. A view that is late catches up, and
        one that was read before the control plane was out of reach says nothing."""
        if epoch >= self._state.promised or not self.is_current:
            self._behind_since = None
        elif self._behind_since is None:
            self._behind_since = now
        elif self._behind_since < now - BEHIND_SECONDS:
            self._behind_since = inf  # told once
            self._effects.append(
                fx.Alarm(
                    "cluster.epoch_back",
                    f"the control plane says epoch {epoch}, this disk has promised {self._state.promised}: it was"
                    " restored from an old copy, or is another cluster's. What the replicas know counts: whoever leads"
                    " writes its record there again",
                )
            )

    def claimed(self, won: bool, known: bool, view: Versioned | None, now: float) -> None:
        """The result of `ClaimShard`. known: False if nobody knows whether it was applied"""
        if view is not None:
            self.view = view
        self._office.claimed(won, known, view, now)
        self._take_office()

    # Time

    @property
    def next_deadline(self) -> float:
        held_until = self._heard_at + HOLD_SECONDS if self._held else inf
        return (
            inf
            if self.is_leading
            else min(self._try_at, self._note_at, self._office.next_deadline, held_until)
        )

    def tick(self, now: float) -> None:
        """Monotonic seconds; call it at `next_deadline`."""
        if self.is_leading:
            return
        self._promise_held(now)
        self._office.tick(now)
        self._take_office()
        self._note_copies(now)
        record = self.record
        is_eager = self._is_eager and record is not None and record.leader in ("", self.node)
        if now < self._try_at and not is_eager:
            return
        self._is_eager = False
        self._try_at = now + self._patience() / 2
        if self._office.step is not Step.NONE or self.view is None or not self.is_current:
            return
        if self._state.opened == m.DOUBTED and not self._is_chosen(self.view.record):
            return  # R11
        if now >= self._office.not_before and not self.hears_leader(now) and self._may_lead(now):
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

    def _may_lead(self, now: float) -> bool:
        """R10: a disk that is full, fails or is slow is left to others, as long as they may want to lead."""
        if self._can_lead():
            self._unwell_since = None
            return True
        if self._unwell_since is None:
            self._unwell_since = now
            self._effects.append(
                fx.Alarm("cluster.disk_unwell", "the disk is full, slow or fails: this node lets others lead")
            )
        return now - self._unwell_since >= UNWELL_SECONDS

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
        elif isinstance(message, m.Fetch):
            if message.epoch != self._state.promised or self._state.opened == m.DOUBTED:
                self._outdated(link)  # what it had promised with may be gone: R11
            else:
                self._effects.append(fx.Serve(link, message.epoch, message.partition, message.have))
        elif link != self._leader or getattr(message, "epoch", -1) != self._state.promised:
            self._outdated(link)  # R5, R9
        elif self._held:
            # Somebody has won a higher epoch. The link stays: its end will tell that this leader has ended.
            self._has_missed = True
            self._reply(link, m.Outdated(max(each.epoch for each in self._held.values())))
        elif self._has_missed:
            self._outdated(link)  # R5: it begins anew with a comparison
        else:
            self._hears(now)
            if self._office.step in (Step.POLLING, Step.RANKED):
                self._office.abandon()  # it lives
            self._follow(link, message, raw, now)

    def _hold_or_promise(self, link: int, message: m.Promise, now: float) -> None:
        """R15: while a leader may hold the lease of the majority by this replica's answer, nobody else is promised."""
        is_held = (
            message.epoch > self._state.promised and link != self._leader and now < self._heard_at + HOLD_SECONDS
        )  # fmt: skip
        if is_held:
            self._held[link] = message
            self._office.abandon()
        else:
            self._promise(link, message, now)

    def _promise_held(self, now: float) -> None:
        if self._held and now >= self._heard_at + HOLD_SECONDS:
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
        if self._office.is_taken and epoch == self._office.epoch:
            self._outdated(link)
            return
        # While this replica's own claim is out: whoever has won that epoch, or leads in the one before, is followed.
        self._office.abandon()
        self.flush()
        self._logs.sync()  # what is left of an adoption that was given up is acknowledged to nobody
        if message.forced > self._state.forced:
            self._logs.forget_marks()
        self._state.promise(epoch, message.term, message.forced)
        self._leader, self._is_fed, self._has_missed = link, False, False
        self._hears(now)
        self._reply(link, promised_here(epoch, self._state, self._logs))

    def _is_of_another(self, message: m.Promise) -> bool:
        """Its epoch was promised to another claim: the control plane gave it out twice."""
        known = self._state.promised_term
        return (
            message.epoch == self._state.promised
            and "" not in (known, message.term)
            and known != message.term
        )

    def _follow(self, link: int, message: m.ReplicaMessage, raw: memoryview, now: float) -> None:
        epoch = self._state.promised
        if not isinstance(message, m.Beat):
            self._is_fed = True
        if isinstance(message, m.Inventory):
            self.flush()
            segments = self._logs.inventory(message.partition)
            self._reply(link, m.Segments(epoch, message.partition, segments))
        elif isinstance(message, DataFrame):
            try:
                change_copy(message, raw, self._logs, self._state, self._effects)
            except CutRefused as refused:
                self._refuse(link, refused)
                return
            self._is_dirty = True
        elif isinstance(message, m.Complete):
            self.flush()
            members = message.members  # R4: its log is a part of this term's from here on
            self._state.open(epoch, self._state.promised_term, None if members is None else noted(members))
            self._reply(link, m.Opened(epoch))
        elif isinstance(message, m.Distrust):
            self._state.distrust()  # R11
            self._effects.append(
                fx.Alarm(
                    "cluster.copy_doubted",
                    "it ends before what it had acknowledged: its disk went back in time",
                )
            )
        elif isinstance(message, m.Beat):
            if self._state.opened == epoch:  # else its records may be others than those that are committed
                for partition, lsn in message.committed.items():
                    self._logs.note_committed(partition, lsn)
                if message.members is not None:
                    self._state.note_voters(noted(message.members))
            # A claim that is out may be won at any time, and this replica promises it at once.
            count = message.count if self._office.step is Step.NONE else NOT_LEASED
            self._reply(link, m.Heard(epoch, self._is_well(), count))
        elif isinstance(message, m.Succeed) and self.view is not None and self._is_well():
            self.flush()
            self._leader = None
            self._office.begin(self.view, now, asked=True)
            self._take_office()

    def _refuse(self, link: int, refused: CutRefused) -> None:
        """R5: this copy stays as it is, and its leader learns that its own log lacks what was committed."""
        self._effects.append(fx.Alarm("cluster.copies_disagree", f"{refused.why}: {WAY_OUT}"))
        self._leader = None
        self._reply(link, m.Ahead(self._state.promised, refused.partition, refused.why), is_last=True)

    def flush(self) -> None:
        """Sync what came, and acknowledge it: R6. Call it when nothing more is to be read at once."""
        if not self._is_dirty:
            return
        self._is_dirty = False
        for partition, next_lsn, name, stop in self._logs.sync():
            if self._leader is not None:
                self._reply(self._leader, m.Synced(self._state.promised, partition, next_lsn, name, stop))

    def lost(self, link: int, now: float, *, ended_there: bool = True) -> None:
        """A link that another process has dialled has ended. ended_there: that process has closed it, or is gone"""
        self._held.pop(link, None)
        if link == self._leader:
            self.flush()
            self._leader = None
            if self._is_fed and ended_there:  # a claimant that has become the leader dials anew
                self._heard_at, self._try_at = -inf, now  # its process is gone: no patience is needed
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
            self._leader = None  # what it says is of an older epoch
        if self._office.step is Step.LEADS:
            self.is_leading = True

    def _outdated(self, link: int) -> None:
        self._reply(link, m.Outdated(self._state.promised, self._state.promised_term), is_last=True)

    def _reply(self, link: int, message: m.ReplicaMessage, *, is_last: bool = False) -> None:
        self._effects.append(fx.Reply(link, message, is_last))

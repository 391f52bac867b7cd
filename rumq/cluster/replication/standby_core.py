"""A replica of a shard that does not lead: it follows the leader, and takes office when there is none. Sans-IO.

docs/replication.md has the rules by number; each is named here where it is kept. What is written goes to a port
(`LogCopies`), what is promised to another (`ReplicaState`), both of which are on disk when they return."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from rumq.cluster.control.records import ShardRecord, Versioned
from rumq.cluster.replication import effects as fx
from rumq.cluster.replication import messages as m
from rumq.cluster.replication.office import Office, Step
from rumq.cluster.replication.ports import DataFrame, LogCopies, ReplicaState

PATIENCE_SECONDS = (0.4, 0.9)  # a leader that is silent for so long may be gone; chosen anew for each wait
BEHIND_SECONDS = 5.0
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
        self._heard_at = -inf
        self._try_at = now + patience()  # the next attempt to take office, if nothing is heard
        self._is_eager = True  # a leader that is not named, or was this node, is not waited for
        self._is_dirty = False
        self._is_fed = False  # the leader has sent more than its claim
        self._office = Office(node, logs, state, self._effects, unique)
        self._behind_since: float | None = None

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
        return now - self._heard_at < PATIENCE_SECONDS[0]

    def _hears(self, now: float) -> None:
        self._heard_at, self._try_at, self._is_eager = now, now + self._patience(), False
        self._unwell_since = None

    # The control plane

    def seen(self, view: Versioned | None, is_current: bool, now: float) -> None:
        """What the agent says of this shard."""
        self.is_current = is_current
        if view is not None:
            self.view = view
            self._office.seen(view, now)
            self._watch_epoch(view.record.epoch, now)
            if view.record.leader == self.node and view.record.epoch >= self._state.promised:
                self._is_eager = True  # of a claim that was given up, or of a run before: nobody leads
        self.tick(now)

    def _watch_epoch(self, epoch: int, now: float) -> None:
        """An epoch goes back only where the control plane has lost what it knew. A view that is late catches up."""
        if epoch >= self._state.promised:
            self._behind_since = None
        elif self._behind_since is None:
            self._behind_since = now
        elif self._behind_since < now - BEHIND_SECONDS:
            self._behind_since = inf  # told once
            self._effects.append(
                fx.Alarm(
                    "cluster.epoch_back",
                    f"the control plane says epoch {epoch}, this disk has promised {self._state.promised}: it was"
                    " restored from an old copy, or is another cluster's; rumqd cluster force-leader goes on from"
                    " this disk",
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
        return inf if self.is_leading else min(self._try_at, self._office.next_deadline)

    def tick(self, now: float) -> None:
        """Monotonic seconds; call it at `next_deadline`."""
        if self.is_leading:
            return
        self._office.tick(now)
        self._take_office()
        record = self.record
        is_eager = self._is_eager and record is not None and record.leader in ("", self.node)
        if now < self._try_at and not is_eager:
            return
        self._is_eager = False
        self._try_at = now + self._patience() / 2
        if self._office.step is not Step.NONE or self.view is None or not self.is_current:
            return
        if self._state.opened == m.DOUBTED:
            return  # R11
        if self.node in self.view.record.voters and not self.hears_leader(now) and self._may_lead(now):
            self._office.begin(self.view, now)
            self._take_office()

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
            self._reply(link, m.Polled(hears, self._state.promised, self._state.opened, records))
        elif isinstance(message, m.Promise):
            self._promise(link, message.epoch, now)
        elif isinstance(message, m.Fetch):
            if message.epoch != self._state.promised:
                self._outdated(link)
            else:
                self._effects.append(fx.Serve(link, message.epoch, message.partition, message.have))
        elif link != self._leader or getattr(message, "epoch", -1) != self._state.promised:
            self._outdated(link)  # R5, R9
        else:
            self._hears(now)
            self._follow(link, message, raw, now)

    def _promise(self, link: int, epoch: int, now: float) -> None:
        """R2: listen to no older leader; what was written is synced before the answer."""
        if epoch < self._state.promised:
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
        if epoch > self._state.promised:
            self._state.promise(epoch)
        ends = self._logs.ends()
        self._leader, self._is_fed = link, False
        self._hears(now)
        self._reply(link, m.Promised(epoch, self._state.opened, ends))

    def _follow(self, link: int, message: m.ReplicaMessage, raw: memoryview, now: float) -> None:
        epoch = self._state.promised
        if not isinstance(message, m.Beat):
            self._is_fed = True
        if isinstance(message, m.Inventory):
            self.flush()
            segments = self._logs.inventory(message.partition)
            self._reply(link, m.Segments(epoch, message.partition, segments))
        elif isinstance(message, DataFrame):
            self._logs.apply(message, raw)
            self._is_dirty = True
        elif isinstance(message, m.Complete):
            self.flush()
            self._state.open(epoch)  # R4: its log is a part of this term's from here on
            self._reply(link, m.Opened(epoch))
        elif isinstance(message, m.Beat):
            if self._state.opened == epoch:  # else its records may be others than those that are committed
                for partition, lsn in message.committed.items():
                    self._logs.note_committed(partition, lsn)
            self._reply(link, m.Heard(epoch, self._is_well()))
        elif isinstance(message, m.Succeed) and self.view is not None and self._is_well():
            self.flush()
            self._leader = None
            self._office.begin(self.view, now, asked=True)
            self._take_office()

    def flush(self) -> None:
        """Sync what came, and acknowledge it: R6. Call it when nothing more is to be read at once."""
        if not self._is_dirty:
            return
        self._is_dirty = False
        for partition, next_lsn, name, stop in self._logs.sync():
            if self._leader is not None:
                self._reply(self._leader, m.Synced(self._state.promised, partition, next_lsn, name, stop))

    def lost(self, link: int, now: float) -> None:
        """A link that another process has dialled has ended."""
        if link == self._leader:
            self.flush()
            self._leader = None
            if self._is_fed:  # a claimant that has become the leader dials anew
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
        self._reply(link, m.Outdated(self._state.promised), is_last=True)

    def _reply(self, link: int, message: m.ReplicaMessage, *, is_last: bool = False) -> None:
        self._effects.append(fx.Reply(link, message, is_last))

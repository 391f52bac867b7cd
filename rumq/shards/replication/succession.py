"""How a leader has one of its followers lead instead: by an order, before a stop, or because its disk is not well."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from commitlog.log.partition import Partition
from rumq.cluster.replication.leader_core import LeaderCore
from rumq.loop.ports import Clock, EventSink, Timers
from rumq.shards.replication.hand_over import HandOver, HeldClients
from rumq.shards.replication.leader_disk import DiskProblem, DiskWatch, LeaderCommit, maybe_problem

LOOK_SECONDS = 0.01  # between two looks at a hand-over that runs
SUCCEED_SECONDS = 0.2  # a leader that resigns ends after that


class Succession:
    def __init__(
        self, shard: int, core: LeaderCore, partitions: Sequence[Partition], commit: Callable[[], LeaderCommit],
        timers: Timers, clock: Clock, events: EventSink, carry_out: Callable[[], object],
    ) -> None:  # fmt: skip
        """commit: group commit, which exists later; carry_out: the effects of the core"""
        self.core, self._shard, self._partitions, self._commit = core, shard, partitions, commit
        self._timers, self._clock, self._carry_out = timers, clock, carry_out
        self._disk = DiskWatch(self, shard, events)
        self._hand_over: HandOver | None = None

    @property
    def is_handing_over(self) -> bool:
        return self._hand_over is not None

    def hand_over(self, to: str, done: Callable[[str], None], clients: HeldClients | None = None) -> None:
        """Have a follower lead instead; this process ends then. done: told why that has failed

        clients: whose connections go on there; None: nobody's do"""
        if to not in self.core.peers:
            done(f"{to} is no follower of shard {self._shard}")
        elif self._hand_over is not None:
            done(f"the shard is handed over to {self._hand_over.to}")
        else:
            self._hand_over = HandOver(
                to, self._clock.monotonic, commit=self._commit(), has_all=self.core.has_all,
                succeed=self._succeed, done=done, clients=clients,
            )  # fmt: skip
            self._timers.later(LOOK_SECONDS, self._go_on)

    def _go_on(self) -> None:
        """With the hand-over."""
        if self._hand_over is not None and not self.core.is_deposed:
            self._hand_over.look(self._clock.monotonic)
            if self._hand_over.is_over:
                self._hand_over = None
            else:
                self._timers.later(LOOK_SECONDS, self._go_on)

    def _succeed(self, peer: str) -> None:
        self.core.succeed(peer)
        self._carry_out()

    def look(self, now: float) -> None:
        """Have another lead if this leader's disk is not well. now: monotonic seconds"""
        if self._hand_over is None:
            self._disk.look(now)

    def disk_problem(self) -> DiskProblem | None:
        """Why this leader's disk is not good enough."""
        commit = self._commit()
        return maybe_problem(self._partitions, commit, commit.space)

    def resign(self, to: str, why: str) -> None:
        """Have a follower lead, and wait for nothing: what is pending here was promised to nobody."""
        self._succeed(to)  # if this is lost, it finds the leader gone
        self._timers.later(SUCCEED_SECONDS, lambda: self._depose(f"this node cannot lead: {why}"))

    def _depose(self, why: str) -> None:
        self.core.depose(why)
        self._carry_out()

    def close(self) -> None:
        self._hand_over = None

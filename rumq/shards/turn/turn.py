"""One turn of a shard: take what connections sent, step the router, carry out its effects, hand groups to the disk.

The pump begins and ends each turn. A step is settled records, then commands, then effects; effects may put commands, so
a turn repeats steps until nothing is left, within `STEPS_A_TURN`."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import Any, Protocol

from commitlog.partition_types import PartitionWriter
from commitlog.store import Store
from router.commands import Appended, GoOn
from router.shard import Shard as Router
from rumq.mqtt.kernels.batch import Batch
from rumq.mqtt.kernels.trace_context import Sampler
from rumq.session.connection.pending_acks import AckTracker
from rumq.session.state.histogram import Histogram
from rumq.session.state.shard_totals import ShardTotals
from rumq.shards.bus.remote_partition import RemotePartition
from rumq.shards.delivery.retained_delivery import RetainedDelivery
from rumq.shards.turn.effect_dispatch import EffectDispatch
from rumq.shards.turn.fault_guard import ShardEvents
from rumq.shards.turn.queues import ReadyLinks, StepQueue
from rumq.shards.turn.scheduler import ShardClock, TimerQueue
from rumq.tracing.tracer import Tracer

STEPS_A_TURN = 64  # an effect's command, that command's effect and so on: at most so deep in one turn


class PeerStage(Protocol):
    """The other shards, in a turn."""

    def changes(self) -> None:
        """After a step: tell which filters are wanted here that were not, and which are not any more."""

    def end_turn(self) -> None:
        """Tell what they wait for."""


class Turn:
    """batches: what clients have published in this step, by partition; commands: for the next step; ready: links whose
    readers go on in the next step

    stage_seconds: how long stages may wait after turns that only delivered messages of QoS 0, which nobody waits for"""

    def __init__(
        self, clock: ShardClock, timers: TimerQueue, events: ShardEvents, store: Store, router: Router,
        totals: ShardTotals, tracer: Tracer,
    ) -> None:  # fmt: skip
        self.clock, self.timers, self.events = clock, timers, events
        self._router, self._totals, self._alone = router, totals, events.alone
        self._own = {p.index: p for p in store.partitions if isinstance(p, PartitionWriter)}
        self._senders = [p.outgoing if isinstance(p, RemotePartition) else None for p in store.partitions]
        self.commands = StepQueue()
        self.ready = ReadyLinks()
        self.batches = [Batch() for _ in store.partitions]
        self.effects = EffectDispatch()
        self._stages: tuple[Callable[[], None], ...] = ()
        self._deadlines: tuple[Callable[[], float], ...] = ()
        self._acks: AckTracker
        self._retained: RetainedDelivery
        self._peers: PeerStage | None = None
        self.stage_seconds = 0.0
        self._stages_due = 0.0
        self._is_plain = self._stages_wait = False
        self._was_quiet = False
        self._wake_at = 0.0  # when a turn is due, if nothing comes
        self._began = 0.0
        self.durations = Histogram()  # from the begin to the end of turns in which something came
        self.sampler: Sampler | None = None
        self._tracer = tracer

    def connect(
        self, acks: AckTracker, retained: RetainedDelivery, stages: tuple[Callable[[], None], ...],
        deadlines: tuple[Callable[[], float], ...], peers: PeerStage | None,
    ) -> None:  # fmt: skip
        """Once, before the first turn. stages: what ends a turn, in order; they confine what goes wrong in them

        deadlines: when a stage wants a turn, monotonic seconds; peers: None with one shard"""
        self._acks, self._retained, self._stages, self._peers = acks, retained, stages, peers
        self._deadlines = deadlines

    def trace(self, sample_every: int, per_second_max: int) -> None:
        """Trace one message in so many, and those that ask for it; 0: none."""
        self.sampler = self._tracer.set(sample_every, per_second_max)

    # Called by the pump

    def begin_turn(self) -> None:
        self._began = monotonic()
        self.clock.tick()
        self._retained.begin_turn(self.clock.now_us)
        if self._router.begin_turn():
            self.commands.put(GoOn())
        self.timers.run_next_turn(self._alone)
        self.ready.begin_turn()

    def end_quiet_turn(self) -> None:
        """Nothing came but PINGREQs: as if nobody had woken the turn, nothing is due before the next deadline."""
        self._was_quiet = (
            self.clock.monotonic < self._wake_at and not self.commands.items and not self.ready.now
        )
        if not self._was_quiet:
            self.end_turn()

    def end_turn(self) -> None:
        self._was_quiet = False
        self._is_plain = True
        self.step()
        now = self.clock.monotonic
        self._stages_wait = self._is_plain and now < self._stages_due
        if not self._stages_wait:
            self._stages_due = now + self.stage_seconds
            if self._router.groups.ended:
                self._router.subscribing.grouping.remove_some_filters()
                if self._peers is not None:
                    self._peers.changes()
            self._run_stages()
            if self.commands.items:
                # A group that was written at once is committed: who waits for that does not wait for another turn.
                self.step()
                self._run_stages()
        if self._peers is not None:
            self._peers.end_turn()
        if self.sampler is not None and self.sampler.waits:
            self._tracer.end_turn()
        self.durations.observe(monotonic() - self._began)

    def _run_stages(self) -> None:
        for end_turn in self._stages:
            end_turn()

    def drained(self, connection: Any) -> None:
        self.ready.add(connection.link)

    def crashed(self, connection: Any) -> None:
        self.events.crashed(connection)

    def failed(self, task: str) -> None:
        self.events.failed(task)

    def seconds_to_next_deadline(self) -> float:
        """How long the pump may wait; by the time of the turn that has just ended."""
        if not self._was_quiet or self.ready.now:
            self._wake_at = self._next_deadline()
        wait = self._wake_at - self.clock.monotonic
        return wait if wait > 0.0 else 0.0

    def _next_deadline(self) -> float:
        """When a turn is due, whether anything comes or not: monotonic seconds, 0 for at once."""
        router = self._router
        if self.ready.now or self.commands.items or self.ready.next_turn or self.timers.has_next_turn:
            return 0.0
        if router.groups.ended or router.delivery.has_deferred():
            return 0.0
        if self._stages_wait:
            return self._stages_due
        deadline = self.timers.next_deadline()
        for next_deadline in self._deadlines:
            other = next_deadline()
            if deadline is None or other < deadline:
                deadline = other
        assert deadline is not None
        return deadline

    # Steps

    def settle(self) -> None:
        """Append what was published so far, and tell the router of it before the commands that come now."""
        if self.commands.items:
            self._is_plain = False
        sampler = self.sampler
        for index, batch in enumerate(self.batches):
            if batch.count:
                sender = self._senders[index]
                self._totals.published_bytes += batch.frames_len
                rows, frames, count, flags, tags = batch.take()
                stamped = None
                if sampler is not None and sampler.wants(rows, frames, count, flags, self.clock.monotonic):
                    stamped = self._tracer.publishes(index, rows, frames, count, flags, self.clock.now_us)
                    if stamped is not None:
                        frames, flags = stamped.frames, stamped.flags
                if sender is None:
                    chunk = self._own[index].append(rows, frames, count, flags, self.clock.now_us, tags)
                    if stamped is not None:
                        chunk.traces = self._tracer.appended(chunk.base_lsn, stamped.traces)
                    self.commands.put(Appended(index, chunk))
                else:
                    self._is_plain = False
                    self._totals.handed_over += count
                    if stamped is None:
                        sender.append(rows, frames, count, flags, tags)
                    else:
                        wire = self._tracer.handed_over(stamped.traces)
                        sender.append(rows, frames, count, flags, tags, wire)

    def step(self) -> None:
        """Step the router until nothing is left to do."""
        self.settle()
        router, commands, effects = self._router, self.commands, self.effects
        peers = self._peers
        for _ in range(STEPS_A_TURN):
            if self.ready.now:
                self._is_plain = False
                self._go_on()
            if not commands.items:
                break
            for effect in router.step(commands.take()):
                effects.carry_out(effect)
            if peers is not None:
                if not commands.items and router.delivery.has_unconfirmed:
                    for effect in router.step([]):
                        effects.carry_out(effect)
                if router.groups.changed_filters:
                    peers.changes()
            self.timers.run_after_step(self._alone)
            self.settle()
        if self._acks.end_step():
            self._is_plain = False
            if commands.items or self.ready.now:
                self.step()

    def _go_on(self) -> None:
        """Have the readers of links go on that have room or credit again."""
        for link in self.ready.take():
            try:
                link.drained()
            except Exception:
                self.events.crashed(link.transport)

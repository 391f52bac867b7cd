"""One turn of a shard: take what connections sent, step the router, carry out its effects, hand groups to the disk.

The pump begins and ends each turn. A step is settled records, then commands, then effects; effects may put commands, so
a turn repeats steps until nothing is left, within `STEPS_A_TURN`. Stages end the turn."""
# compiled: hot

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from commitlog.log.partition import Partition
from commitlog.log.partition_types import PartitionWriter
from commitlog.log.store import Store
from router.commands import GoOn, appended
from router.shard import ShardRouter
from rumq.loop.fault_guard import ShardEvents
from rumq.loop.kernels import system_clock
from rumq.loop.queues import ReadyLinks, StepQueue
from rumq.loop.scheduler import ShardClock, TimerQueue
from rumq.loop.stage import Stage
from rumq.mqtt.kernels.batch import Batch
from rumq.mqtt.kernels.trace_context import Sampler
from rumq.net.turn_handler import TurnHandler
from rumq.session.connection.pending_acks import AckTracker
from rumq.session.state.histogram import Histogram
from rumq.session.state.shard_totals import ShardTotals
from rumq.shards.bus.remote_partition import RemotePartition
from rumq.shards.delivery.retained_delivery import RetainedDelivery
from rumq.shards.turn.effect_dispatch import EffectDispatch
from rumq.shards.turn.step_input import StepInput
from rumq.tracing.tracer import Tracer

PLAIN_BYTES_MAX = 1 << 16  # appended since the stages ran: more is written, and held back, by them in the same turn
STEPS_A_TURN = 64  # effects cause commands, which cause effects: at most so many rounds in a turn


class BatchAppender:
    """Appends what clients have published in a step to the partitions here, or hands it to the shards that own them.

    is_plain: in this turn nothing has happened but that records were appended here and delivered with QoS 0
    unstaged_bytes: published since the stages ran

    sampler: chooses the messages that are traced; None: none are"""

    def __init__(
        self, step_input: StepInput, clock: ShardClock, store: Store, totals: ShardTotals, tracer: Tracer
    ) -> None:
        self._batches, self._commands = step_input.batches, step_input.commands
        self._own = [p if isinstance(p, PartitionWriter) else None for p in store.partitions]
        self._senders = [p.outgoing if isinstance(p, RemotePartition) else None for p in store.partitions]
        self._clock, self._totals, self._tracer = clock, totals, tracer
        self.sampler: Sampler | None = None
        self.is_plain = False
        self.unstaged_bytes = 0

    def trace(self, sample_every: int, per_second_max: int) -> None:
        """Trace one message in so many, and those that ask for it; 0: none."""
        self.sampler = self._tracer.set(sample_every, per_second_max)

    def end_turn(self) -> None:
        """Finish the traces that wait for the end of a turn."""
        if self.sampler is not None and self.sampler.waits:
            self._tracer.end_turn()

    def settle(self) -> None:
        """Append what was published so far, and tell the router of it before the commands that come now."""
        if self._commands.items:
            self.is_plain = False
        index = -1
        for batch in self._batches:
            index += 1
            if batch.count:
                self._append(index, batch)

    def _append(self, index: int, batch: Batch) -> None:
        """What was published to one partition."""
        sampler, sender = self.sampler, self._senders[index]
        self._totals.published_bytes += batch.frames_len
        self.unstaged_bytes += batch.frames_len
        if self.unstaged_bytes > PLAIN_BYTES_MAX:
            self.is_plain = False
        count, flags = batch.count, batch.flags
        rows, frames, tags = batch.taken_rows(), batch.taken_frames(), batch.taken_tags()
        batch.begin()
        stamped = None
        if sampler is not None and sampler.wants(rows, frames, count, flags, self._clock.monotonic):
            stamped = self._tracer.publishes(index, rows, frames, count, flags, self._clock.now_us)
            if stamped is not None:
                frames, flags = stamped.frames, stamped.flags
        if sender is None:
            partition = self._own[index]
            assert partition is not None
            if isinstance(partition, Partition):
                log: Partition = partition
                chunk = log.append(rows, frames, count, flags, self._clock.now_us, tags)
            else:
                chunk = partition.append(rows, frames, count, flags, self._clock.now_us, tags)
            if stamped is not None:
                chunk.traces = self._tracer.appended(chunk.base_lsn, stamped.traces)
            self._commands.items.append(appended(index, chunk))
        else:
            self.is_plain = False
            self._totals.handed_over += count
            if stamped is None:
                sender.append(rows, frames, count, flags, tags)
            else:
                wire = self._tracer.handed_over(stamped.traces)
                sender.append(rows, frames, count, flags, tags, wire)


class PeersInTurn(Protocol):
    """The other shards, in a turn."""

    def changes(self) -> None:
        """After a step: tell which filters are wanted here that were not, and which are not any more."""

    def end_turn(self) -> None:
        """Tell what they wait for."""


class Steps:
    """The router's steps. effects: what carries out what the router asks for; guard: confines what timed calls raise"""

    def __init__(
        self, step_input: StepInput, appender: BatchAppender, router: ShardRouter, timers: TimerQueue,
        events: ShardEvents, acks: AckTracker,
    ) -> None:  # fmt: skip
        self._commands, self._ready = step_input.commands, step_input.ready
        self._appender, self._router, self._acks = appender, router, acks
        self._timers, self._events, self.guard = timers, events, events.alone
        self.effects = EffectDispatch()
        self._peers: PeersInTurn | None = None

    def connect(self, peers: PeersInTurn | None) -> None:
        """Once, before the first turn. peers: None with one shard"""
        self._peers = peers

    def step(self) -> None:
        """Step the router until nothing is left to do."""
        appender = self._appender
        appender.settle()
        router, commands, effects = self._router, self._commands, self.effects
        peers = self._peers
        for _ in range(STEPS_A_TURN):
            if self._ready.now:
                appender.is_plain = False
                self._go_on()
            if not commands.items:
                break
            for effect in router.step(commands.take()):
                effects.carry_out(effect)
            if peers is not None:
                if not commands.items and router.delivery.has_unconfirmed:
                    for effect in router.step([]):
                        effects.carry_out(effect)
                if router.groups.local_filters.changed:
                    peers.changes()
            self._timers.run_after_step(self.guard)
            appender.settle()
        if self._acks.end_step():
            appender.is_plain = False
            if commands.items or self._ready.now:
                self.step()

    def _go_on(self) -> None:
        """Have the readers of links go on that have room or credit again."""
        for link in self._ready.take():
            try:
                link.drained()
            except Exception:
                self._events.crashed(link.transport)


class StagesInOrder(NamedTuple):
    """timed: have nothing to do before a deadline of theirs, or of a timed call, and come first; each: of each turn

    again: those of them that a second step needs; deadlines: those that may want a turn"""

    timed: tuple[Stage, ...] = ()
    each: tuple[Stage, ...] = ()
    again: tuple[Stage, ...] = ()
    deadlines: tuple[Stage, ...] = ()


class Stages:
    """What ends a turn, in order: housekeeping, the journal, group commit and so on, and when it is due.

    seconds: how long they may wait after turns that only delivered messages of QoS 0, which nobody waits for

    due_at: monotonic seconds; are_waiting: they were left out of the last turn
    timed_at: before that the stages that go by the clock have nothing to do, monotonic seconds; 0.0: not known"""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.due_at = self.timed_at = 0.0
        self.are_waiting = False
        self._timed: tuple[Stage, ...] = ()
        self._each: tuple[Stage, ...] = ()
        self._again: tuple[Stage, ...] = ()
        self._deadlines: tuple[Stage, ...] = ()

    def connect(self, stages: StagesInOrder) -> None:
        """Once, before the first turn."""
        self._timed, self._each, self._again, self._deadlines = stages

    def are_due(self, now: float, is_plain: bool) -> bool:
        """Whether they are to run in this turn. is_plain: as of `BatchAppender`"""
        self.are_waiting = is_plain and now < self.due_at
        if self.are_waiting:
            self.timed_at = 0.0  # what this turn has set is not known before they have run
        else:
            self.due_at = now + self.seconds
        return not self.are_waiting

    def run(self, now: float) -> None:
        """All of them but those that go by the clock, if nothing of these is due."""
        if now >= self.timed_at:
            for stage in self._timed:
                stage.end_turn()
        self.timed_at = 0.0  # this turn may have set an earlier one
        for stage in self._each:
            stage.end_turn()

    def run_again(self) -> None:
        """Those that a second step in the same turn may have given something to do that does not wait."""
        for stage in self._again:
            stage.end_second_step()

    def earliest(self, deadline: float) -> float:
        """The first of a deadline of a timed call and theirs."""
        for stage in self._timed:
            other = stage.next_deadline()
            if other < deadline:
                deadline = other
        self.timed_at = deadline
        for stage in self._deadlines:
            other = stage.next_deadline()
            if other < deadline:
                deadline = other
        return deadline


class Turn(TurnHandler):
    """steps, stages, appender: its parts"""

    def __init__(
        self, clock: ShardClock, timers: TimerQueue, events: ShardEvents, router: ShardRouter, step_input: StepInput,
        appender: BatchAppender, steps: Steps, stages: Stages,
    ) -> None:  # fmt: skip
        self.clock, self._timers, self._events, self._router = clock, timers, events, router
        self._commands: StepQueue = step_input.commands
        self._ready: ReadyLinks = step_input.ready
        self.appender, self.steps, self.stages = appender, steps, stages
        self._retained: RetainedDelivery
        self._peers: PeersInTurn | None = None
        self._was_quiet = False
        self._wake_at = 0.0  # monotonic seconds: a turn runs then even if no socket is ready
        self._began = 0.0
        self.durations = Histogram()  # of turns in which something arrived, from begin to end

    def connect(self, retained: RetainedDelivery, peers: PeersInTurn | None) -> None:
        """Once, before the first turn. peers: None with one shard"""
        self._retained, self._peers = retained, peers
        self.steps.connect(peers)

    # Called by the pump

    def begin_turn(self) -> float:
        self._began = system_clock.monotonic()
        self.clock.tick()
        self._retained.begin_turn(self.clock.now_us)
        if self._router.begin_turn():
            self._commands.put(GoOn())
        self._timers.run_next_turn(self.steps.guard)
        self._ready.begin_turn()
        return self.clock.monotonic

    def end_quiet_turn(self) -> None:
        """End a turn in which only packets came that change nothing: skip the stages unless a deadline has passed."""
        self._was_quiet = self.clock.monotonic < self._wake_at and not self._commands.items and not self._ready.now
        if not self._was_quiet:
            self.end_turn()

    def end_turn(self) -> None:
        self._was_quiet = False
        self.appender.is_plain = True
        self.steps.step()
        if self.stages.are_due(self.clock.monotonic, self.appender.is_plain):
            self.appender.unstaged_bytes = 0
            if self._router.groups.ended:
                self._router.subscribing.grouping.remove_some_filters()
                if self._peers is not None:
                    self._peers.changes()
            self.stages.run(self.clock.monotonic)
            if self._commands.items:
                # A group that was written at once is committed: who waits for that does not wait for another turn.
                self.steps.step()
                self.stages.run_again()
        if self._peers is not None:
            self._peers.end_turn()
        self.appender.end_turn()
        self.durations.observe(system_clock.monotonic() - self._began)

    def drained(self, connection: Any) -> None:
        self._ready.add(connection.link)

    def crashed(self, connection: Any) -> None:
        self._events.crashed(connection)

    def failed(self, task: str) -> None:
        self._events.failed(task)

    def seconds_to_next_deadline(self) -> float:
        """How long the pump may wait; by the time of the turn that has just ended."""
        if not self._was_quiet or self._ready.now:
            self._wake_at = self._next_deadline()
        wait = self._wake_at - self.clock.monotonic
        return wait if wait > 0.0 else 0.0

    def _next_deadline(self) -> float:
        """When a turn is due, whether anything comes or not: monotonic seconds, 0 for at once."""
        router, ready, timers = self._router, self._ready, self._timers
        if ready.now or self._commands.items or ready.next_turn or timers.waits():
            return 0.0
        if router.groups.ended or router.delivery.has_deferred():
            return 0.0
        if self.stages.are_waiting:
            return self.stages.due_at
        return self.stages.earliest(timers.next_deadline())

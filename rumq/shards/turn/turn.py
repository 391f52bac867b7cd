"""The loop round one router: gathers what a turn brings, steps the router, carries out its effects.

It is the house that links live in, and the turns that the pump makes. Knows no wire byte beyond what its kernels
build, and no socket."""

from __future__ import annotations

import gc
import os
import uuid
from collections.abc import Callable, Sequence
from typing import Any

from router import commands as c
from router.shard import Shard
from rumq.auth.identity import Work
from rumq.mqtt.kernels.batch import Batch
from rumq.net.pending_logins import State
from rumq.session.connection.broker_port import ClientInfo, PublishRefusal, Redelivering
from rumq.session.connection.listener_policy import OPEN, ListenerPolicy
from rumq.session.connection.pending_acks import PendingAcks
from rumq.session.connection.transport import ConnectionHandler
from rumq.session.flow_control.limits import Limits
from rumq.session.handshake.handshake import Handshake
from rumq.session.journal.recorder import JournalRecorder
from rumq.session.protocol import authorization
from rumq.session.protocol.connected import Connected
from rumq.session.state.drop_counters import DropCounters
from rumq.session.state.keep_alive import KeepAliveMonitor
from rumq.session.state.registry import Registry
from rumq.session.state.shard_totals import ShardTotals
from rumq.shards.bus.messages import Refusing as RefusingMessage
from rumq.shards.bus.messages import RetainedFull
from rumq.shards.delivery.fan_out import FanOut
from rumq.shards.delivery.lost_ranges import LostRanges
from rumq.shards.delivery.redelivery import Redelivery
from rumq.shards.delivery.replay_start import ReplayStart
from rumq.shards.delivery.retained_delivery import RetainedDelivery
from rumq.shards.delivery.will_publisher import WillPublisher
from rumq.shards.processes.client_placement import ClientPlacement
from rumq.shards.processes.fd_passing import FdPassing, Later
from rumq.shards.recovery.journal_writer import JournalWriter
from rumq.shards.recovery.restore import Restorer
from rumq.shards.recovery.startup import Startup
from rumq.shards.retention.clock_monitor import ClockMonitor
from rumq.shards.retention.disk_space import DiskSpace
from rumq.shards.retention.export_positions import ExportPositions
from rumq.shards.retention.segment_removal import SegmentRemover
from rumq.shards.stats.admin_listings import TopicRates
from rumq.shards.stats.consumer_lag import ConsumerLag
from rumq.shards.stats.refusal_summary import RefusalSummary
from rumq.shards.turn.auth_pool import AuthPool
from rumq.shards.turn.bus_assembly import build_bus
from rumq.shards.turn.effect_dispatch import EffectDispatch
from rumq.shards.turn.fault_guard import ShardEvents
from rumq.shards.turn.queues import ReadyLinks, StepQueue
from rumq.shards.turn.scheduler import ShardClock, TimerQueue, system_time
from rumq.shards.write_path.backpressure import Backpressure
from rumq.shards.write_path.group_commit import GroupCommit, PendingAck
from rumq.shards.write_path.retained_quota import RetainedQuota
from rumq.shards.write_path.topic_registry import TopicRegistry
from rumq.shards.write_path.worker_threads import Worker
from rumq.shards.write_path.write_admission import WriteAdmission

TIDY_SECONDS = 1.0
# What is left of one is a cycle of some KiB, if it lasted longer than the collector counts young.
CONNECTIONS_A_COLLECTION = 20_000
UNCHECKED = ("anonymous", "unverified")
STEPS_A_TURN = 64  # what a step brings about is at most this many steps deep


class Driver:
    """One shard: its router, its log, its clients."""

    def __init__(
        self,
        store: Any,
        limits: Limits,
        *,
        event: Callable[..., None],
        linger_seconds: float = 0.005,
        pending_bytes_max: int = 64 << 20,
        backlog_records_max: int = 0,
        free_bytes_min: int = 0,
        retain_for_sessions_bytes_max: int = 0,
        exports: ExportPositions | None = None,
        free_percent_min: float = 0,
        wanted_free_percent_min: float = 0,
        index: int = 0,
        count: int = 1,
        doors: Callable[[Later], FdPassing] | None = None,
        clock: Callable[[], tuple[int, float]] = system_time,
        worker: Callable[[str], Worker] = Worker,
        random: Callable[[int], bytes] = os.urandom,
    ) -> None:
        """index, count: of the shards, which one this is; doors: makes the way to the others

        clock: (µs since 1970, monotonic seconds); worker: makes what waits for disks"""
        self.store = store
        self.index = index
        self.incarnation = int.from_bytes(random(7), "little") | 1
        self.entrances: Sequence[ListenerPolicy] = (OPEN,)  # of every listener
        self.limits = limits
        self.clock = ShardClock(clock)
        self.now_us, self.monotonic = self.clock.now_us, self.clock.monotonic
        self.timers = TimerQueue(self.clock)
        self.later, self.next_turn, self.after_step = (
            self.timers.later,
            self.timers.next_turn,
            self.timers.after_step,
        )
        self.events = ShardEvents(RefusalSummary(event, self.later).tell)
        self._event = self.tell = self.events.tell
        self.event, self.crashed, self.given_up = (
            self.events.of_client,
            self.events.crashed,
            self.events.given_up,
        )
        self.alone, self.failed = self.events.alone, self.events.failed
        self.commands = StepQueue()
        self.ready = ReadyLinks()
        self.refresh, self.in_next_turn = self.ready.add, self.ready.add_next_turn
        self.shard = Shard(store.partitions, backlog_records_max)
        self.drop_counters = DropCounters()
        self.shard_totals = ShardTotals()
        self.announcing: Any = None  # `rumq.shards.stats.sys_publisher`, if the broker tells of itself
        self.handing = RetainedDelivery(self.shard.retained, self.drop_counters, self.store.partitions)
        self.journal = JournalRecorder()
        self.journal_bit = 1 << len(store.partitions)
        publish_will = WillPublisher(self).publish_will
        self.registry = Registry(
            self.commands, lambda session, will: self.alone("will", lambda: publish_will(session, will)), self.journal
        )  # fmt: skip
        self.keeping = JournalWriter(
            store.internal, store.partitions, self.journal, self.shard, self.registry.sessions.get
        )
        self.batches = [Batch() for _ in store.partitions]
        self.numbering = TopicRegistry(store, event)
        self.topics = self.numbering.known
        self.refusing = WriteAdmission(
            [*store.partitions, store.internal], self.batches, event, free_bytes_min, self._say_refusing
        )
        self.retaining = RetainedQuota(store, self.shard.retained, self.batches, event, self._say_retained)
        self.disk = DiskSpace(
            self, exports, percent=free_percent_min, wanted_percent=wanted_free_percent_min,
            take=lambda partition, removal, why: self._trimming.carry_out(partition, removal, why),
        )  # fmt: skip
        self.about: dict[str, Any] = {}  # version and listeners, for who asks
        self.started = self.monotonic
        self.consumers = ConsumerLag(self)
        self.topic_rates = TopicRates(self)
        self.writer = worker("rumq-write")
        self.reader = worker("rumq-read")
        self.writer.failed = self.reader.failed = self.failed
        self.retention_clock = ClockMonitor(store, self.writer, event, self.now_us, self.monotonic)
        self.writing = GroupCommit(
            [p.ack_source for p in [*store.partitions, store.internal]], len(store.partitions),
            [*(p.index for p in store.own), store.internal.index], self.writer, self.reader, self.commands,
            linger_seconds=linger_seconds, event=event,
            monotonic=lambda: self.monotonic, refusing=self.refusing, free_bytes=self.disk.measure,
        )  # fmt: skip
        self.keep_alive_monitor = KeepAliveMonitor()
        self.repeat = Redelivery(self)
        self.finding = ReplayStart(store, self.shard.retained, self.reader, self.commands, event)
        self.delivering = FanOut(self)
        self.losses = LostRanges(self, self.drop_counters)
        self.carrying = EffectDispatch(self)
        self.restorer = Restorer(store, self.shard, self.registry, self.keeping, self.clock, limits)
        self.doors = doors(self.later) if doors is not None else None
        if self.doors is not None:
            self.doors.failed = self.failed
        self.homes = self.placement = ClientPlacement(self.doors, index, count)
        self.bus = build_bus(
            clock=self.clock, timers=self.timers, commands=self.commands, events=self.events, guard=self.events,
            placement=self.homes, reader=self.reader, store=store, router=self.shard, sessions=self.registry.sessions,
            journal=self.keeping, totals=self.shard_totals, topics=self.numbering, admission=self.refusing,
            quota=self.retaining, urgent=self.writing.urgent, acknowledged=self.writing.released,
            leave_behind=self.losses.leave_behind, doors=self.doors, pump=lambda: self.pump,
            is_draining=lambda: self.drain,
            tally=lambda tally: self.announcing.heard(tally) if self.announcing is not None else None, count=count,
            incarnation=self.incarnation,
        )  # fmt: skip
        self.peers, self.interest, self.queries, self.shares = self.bus
        self.startup = Startup(
            store, self.peers, self.interest, self.queries, self.restorer, self.carrying.carry_out
        )
        self.shard.sharing.is_home = self.homes.is_here
        self.checking = AuthPool(
            lambda fd, call: self.pump.watch(fd, call), self.later, lambda: self.monotonic
        )
        self.slowing = Backpressure(
            self.writing,
            store,
            pending_bytes_max,
            event,
            lambda index: self.shard.feeds[index].deferred_bytes,
        )
        self.pump: Any = None
        self.connections_max: dict[int, int] = {}  # by the listener's number; none: any
        self._turned_away = 0
        self._trimming = SegmentRemover(self, retain_for_sessions_bytes_max, exports, self.disk)
        self.drain = False  # write what waits without lingering: the broker stops
        self._next_tidy = 0.0
        self._welcomed = 0  # connections since the collector looked at everything
        self._held: list[PendingAcks] = []
        self._held_messages: list[PendingAck] = []

    # What links ask of their house

    def add_topic(self, name: bytes) -> bool:
        return self.numbering.add(name)

    def refuse_topic(self, name: bytes, client: ClientInfo, user_topics_max: int | None) -> str:
        user = client.identity.user if client.identity is not None else None
        return self.numbering.refuse(
            name, client.client_id or "", client.transport.peer, user, user_topics_max
        )

    def publisher_number(self, partition: int, client_id: str) -> int:
        return int(self.store.partitions[partition].add_publisher(client_id))

    def hold(self, acks: PendingAcks) -> None:
        self._held.append(acks)

    def hold_messages(self, acks: PendingAcks, data: object) -> None:
        self._held_messages.append(PendingAck(acks, data, 0, 1, True))

    def refuse_publish(
        self, handler: ConnectionHandler, partition: int, *, is_unanswerable: bool
    ) -> PublishRefusal | None:
        if self.batches[partition].refusing:
            return self.refusing.refuse(handler, partition, is_unanswerable=is_unanswerable)
        return self.retaining.refuse()

    def _say_refusing(self, partition: int, full: bool, why: str) -> None:
        self.peers.say_all(RefusingMessage(partition, full, why))

    def _say_retained(self, partition: int, full: bool) -> None:
        self.peers.say_all(RetainedFull(partition, full))

    def send_again(self, client: Redelivering) -> None:
        self.repeat.go_on(client)

    def check(
        self, client: ClientInfo, work: Work, done: Callable[[Any, BaseException | None], None]
    ) -> bool:
        def guarded(result: Any, fault: BaseException | None) -> None:
            try:
                done(result, fault)
            except Exception:
                self.crashed(client.transport)

        return self.checking.submit(
            client.address, work, guarded, user=client.claimed_name, is_here=lambda: not client.closed
        )

    def hold_back(self, client: ClientInfo, answer: Callable[[], None]) -> None:
        self.checking.hold_back(client.address, self.monotonic, answer, user=client.claimed_name)

    def has_room(self, client: ClientInfo) -> bool:
        limit = self.connections_max.get(client.policy.index)
        if limit is None or len(self.pump.connections) - len(self.pump.pending_logins) < limit:
            return True
        self._turned_away += 1
        if self._turned_away & (self._turned_away - 1) == 0:  # the 1st, 2nd, 4th, 8th: told, not flooded
            self._event("listener.overloaded", connections=limit, turned_away=self._turned_away)
        return False

    def logged_in(self, client: ClientInfo) -> None:
        if client.identity is not None and client.identity.method not in UNCHECKED:
            self.checking.was_right(client.address, client.claimed_name)
        if self.pump is not None:
            self.pump.pending_logins.discard(client.transport)

    def keeps(self, client: ClientInfo, size: int) -> bool:
        if self.pump is None:
            return True
        self.pump.pending_logins.set_state(client.transport, State.HEARD)
        return bool(self.pump.pending_logins.keep_bytes(client.transport, size))

    def owes(self, client: ClientInfo, is_owed: bool) -> None:
        if self.pump is not None:
            self.pump.pending_logins.set_state(client.transport, State.OWED if is_owed else State.HEARD)

    def assigned_client_id(self, prefix: str) -> str:
        while not self.homes.is_here(client_id := f"{prefix}{uuid.uuid4().hex[:20]}"):
            pass
        return client_id

    def hand_over(self, client: ClientInfo, client_id: str, data: bytes) -> bool:
        """Whether the client lives in another shard; then its connection is on its way there, with what it sent."""
        is_elsewhere = self.homes.hand_over(client.transport, client.policy.index, client_id, data)
        self.shard_totals.sockets -= is_elsewhere  # it is welcomed there once more
        return is_elsewhere

    def home(self, client_id: str) -> int:
        """The shard that a client lives in."""
        return self.homes.home(client_id)

    def confirm(
        self, asked: list[tuple[str, str]], then: Callable[[], None], *, publishers: bool = False
    ) -> bool:
        """Whether what (filter as written, plain filter) match will come from every shard; if not, `then` is called.

        publishers: and the names of those who publish"""
        return self.interest.confirm_subscriptions(asked, then, publishers=publishers)

    def slow(self, client: ClientInfo, much: bool) -> None:
        """Read nothing more from a client until the partitions it publishes to have caught up."""
        self.slowing.slow(client, much)

    def settle(self) -> None:
        """Put what was published so far before the commands that come now."""
        for index, batch in enumerate(self.batches):
            if batch.count:
                partition = self.store.partitions[index]
                self.shard_totals.published_bytes += batch.frames_len
                if partition.is_mirrored:
                    self.shard_totals.handed_over += batch.count
                    partition.outgoing.append(*batch.take())
                else:
                    self.commands.put(c.Append(index, *batch.take()))

    @property
    def is_restored(self) -> bool:
        """Whether clients may come: what an earlier run left is restored."""
        return self.restorer.is_done

    # A turn

    def welcome(self, transport: Any, entrance: ListenerPolicy = OPEN) -> Handshake:
        link = Handshake(self, transport, entrance)
        self.keep_alive_monitor.add(link, self.monotonic + link.client.limits.connect_seconds_max)
        if self.pump is not None:
            self.pump.pending_logins.add(transport)
        self._welcomed += 1
        self.shard_totals.sockets += 1
        return link

    def permit_again(self) -> None:
        """Rules have changed: hold every client that is here to them."""
        self.settle()
        for session in list(self.registry.sessions.values()):
            link = session.link
            if isinstance(link, Connected):
                authorization.find_permit(link.client, session.client_id)
                authorization.recheck_subscriptions(link.client)

    def begin_turn(self) -> None:
        self.clock.tick()
        self.now_us, self.monotonic = self.clock.now_us, self.clock.monotonic
        self.handing.begin_turn(self.now_us)
        if self.shard.begin_turn():
            self.commands.put(c.GoOn())
        self.timers.run_next_turn(self.alone)
        self.ready.begin_turn()

    def end_turn(self) -> None:
        self._run()
        if self.shard.groups.ended:
            self.shard.subscribing.grouping.remove_some_filters()
            self.interest.changes()
        if self.monotonic >= self.keep_alive_monitor.next_check:
            self.keep_alive_monitor.check(self)
        deadline = self.registry.next_deadline()
        if deadline is not None and deadline <= self.monotonic:
            for session in self.registry.expire(self.monotonic):
                self._event("session.expired", client_id=session.client_id)
            self._run()
        if self.monotonic >= self._next_tidy:
            self._next_tidy = self.monotonic + TIDY_SECONDS
            self._tidy()
        if self.disk.fresh is not None:
            self.disk.look()
        self.timers.run_due(self.alone)
        if self.is_restored:
            self.keeping.flush(self.now_us)
            self.keeping.look(self.now_us, self.monotonic)
        self.writing.start(self.now_us, self.monotonic, self.drain)
        self.slowing.look()
        self.retaining.look()
        if self.doors is not None:
            self.shares.end_turn()
            self.peers.end_turn()
            self.doors.flush()

    def _tidy(self) -> None:
        """Let go of segments that need not be kept, and of connections that are gone."""
        if self._welcomed > CONNECTIONS_A_COLLECTION:
            self._welcomed = 0
            gc.collect()
        self._trimming.look()

    def _run(self) -> None:
        """Step the router until nothing is left to do."""
        self.settle()
        carry_out = self.carrying.carry_out
        for _ in range(STEPS_A_TURN):
            if self.ready.now:
                for link in self.ready.take():
                    try:
                        link.drained()
                    except Exception:
                        self.crashed(link.transport)
            if not self.commands.items:
                break
            for effect in self.shard.step(self.commands.take(), self.now_us):
                carry_out(effect)
            if self.doors is not None and not self.commands.items and self.shard.delivery.has_unconfirmed:
                for effect in self.shard.step([], self.now_us):
                    carry_out(effect)
            if self.shard.groups.changed_filters:
                self.interest.changes()
            self.timers.run_after_step(self.alone)
            self.settle()
        if self._held or self._held_messages:
            # What they wait for is all that has happened until now.
            self.keeping.flush(self.now_us)
            messages, self._held_messages = self._held_messages, []
            for piece in messages:
                self.writing.wait(self.keeping.partition.index, piece)
            held, self._held = self._held, []
            for acks in held:
                if not acks.closed:
                    self.writing.hold(acks)
            if self.commands.items or self.ready.now:
                self._run()

    def drained(self, connection: Any) -> None:
        self.ready.add(connection.link)

    def seconds_to_next_deadline(self) -> float:
        """How long the pump may wait; by the time of the turn that has just ended."""
        if self.ready.now or self.commands.items or self.ready.next_turn or self.timers.has_next_turn:
            return 0.0
        if self.shard.groups.ended or self.shard.delivery.has_deferred:
            return 0.0
        deadline = self.keep_alive_monitor.next_check
        for other in (
            self.writing.next_deadline(self.monotonic),
            self.registry.next_deadline(),
            self.timers.next_deadline(),
        ):
            if other is not None and other < deadline:
                deadline = other
        wait = deadline - self.monotonic
        return wait if wait > 0.0 else 0.0

"""Group commit: acknowledgements leave when what they promise is committed. The writer is run by hand."""

import errno
from math import inf
from types import SimpleNamespace
from typing import Any

import pytest

from commitlog import OpenOptions, StoreLayout, StreamSpec, open_store
from commitlog.testing.simulated_files import SimulatedFiles
from rumq.loop.queues import StepQueue
from rumq.loop.scheduler import ShardClock
from rumq.mqtt.kernels.batch import Batch
from rumq.mqtt.kernels.wire_state import Wire
from rumq.session.connection.pending_acks import AckTracker, PendingAcks
from rumq.session.flow_control.delivery_window import DeliveryWindow
from rumq.session.ports.transport import Outbox
from rumq.session.state.session import Session
from rumq.shards.write_path.group_commit import CommitOptions, GroupCommit
from rumq.shards.write_path.worker_threads import DiskWorkers
from rumq.shards.write_path.write_admission import WriteAdmission
from tests.commitlog.records import DEAD, NOW, append, numbers
from tests.shards.world import ByHand

STATE = StreamSpec("_state", (), 1, "process", 1 << 20, 86_400)


class Sent(Outbox):
    """What left, in order."""

    def __init__(self) -> None:
        self.room, self.refused = 1 << 20, False
        self.pieces: list[bytes] = []

    def write(self, data: Any, owner: object = None) -> None:
        self.pieces.append(bytes(data))


class Link(PendingAcks):
    """A connection as far as `GroupCommit` knows it; `sent` is what left."""

    def __init__(self) -> None:
        self.outbox, session = Sent(), Session("c", None, personal=False)
        broker: Any = SimpleNamespace(journal=None, acks=None)
        super().__init__(broker, session, Wire(False, 1 << 20, 10, 0), self.outbox)
        self.flow = DeliveryWindow(self.outbox, session, 10, StepQueue())
        self.releases = 0

    @property
    def sent(self) -> list[bytes]:
        return self.outbox.pieces

    def wants(self, acks: bytes, *partitions: int) -> "Link":
        self.wire.answer(acks)
        for index in partitions:
            self.wire.ack_parts |= 1 << index
        self.wire.pubacks += 1
        self.wire.unacknowledged += 1
        return self

    def released(self) -> None:
        self.releases += 1


class Bench:
    """partitions: of one stream on a simulated disk"""

    def __init__(self, partitions: int = 1, durability: str = "disk", *, has_copies: bool = False) -> None:
        self.files = SimulatedFiles()
        streams = [StreamSpec("main", ("#",), partitions, durability)]
        self.store = open_store(
            self.files,
            "data",
            StoreLayout(streams, lambda f, t: True, internal=STATE),
            OpenOptions(NOW, random=numbers(0), hot_bytes_max=0, direct_bytes_min=1 << 30),
            holder=DEAD,
        )
        self.worker = ByHand()
        self.commands = StepQueue()
        self.clock = ShardClock(lambda: (NOW, 0.0))
        events = SimpleNamespace(tell=lambda name, **fields: None)
        sources = [partition.ack_source for partition in [*self.store.partitions, self.store.internal]]
        self.acks = AckTracker(sources, lambda now_us: None, self.clock)
        admission = WriteAdmission(
            self.store, [Batch()] * partitions, events, free_bytes_min=0, say=lambda *state: None
        )
        workers: Any = DiskWorkers(self.worker, ByHand())  # type: ignore[arg-type]
        self.commit = GroupCommit(
            self.store, workers, self.acks, admission, self.commands, self.clock, events,
            CommitOptions(0.005, (lambda index: None) if has_copies else None),
        )  # fmt: skip

    def promise(self, link: "Link") -> None:
        self.acks.promise(link)
        self.acks.end_step()

    def publish(self, index: int = 0) -> None:
        append(self.store.partitions[index], [(b"t", b"x")])

    def start(self) -> None:
        self.commit.end_turn()


@pytest.mark.parametrize("durability", ["disk", "process"])
def test_an_acknowledgement_waits_for_its_own_group(durability: str) -> None:
    bench = Bench(durability=durability)
    first, second = Link(), Link()
    bench.publish()
    bench.promise(first.wants(b"1", 0))
    bench.start()
    bench.publish()  # while the first group is being written
    bench.promise(second.wants(b"2", 0))
    bench.start()
    assert (first.sent, second.sent) == ([], []) and len(bench.worker.jobs) == 1
    bench.worker.work()
    assert (first.sent, second.sent) == ([b"1"], [])
    bench.start()
    bench.worker.work()
    assert second.sent == [b"2"]
    assert first.wire.unacknowledged == second.wire.unacknowledged == 0


def test_one_that_depends_on_two_partitions_waits_for_both() -> None:
    bench = Bench(partitions=2)
    link = Link()
    bench.publish(0)
    bench.publish(1)
    bench.promise(link.wants(b"a", 0, 1))
    bench.start()
    bench.worker.work()
    assert link.sent == []
    bench.worker.work()
    assert link.sent == [b"a"]


def test_a_connection_gets_its_answers_in_order() -> None:
    """What is true already waits behind what is not."""
    bench = Bench(partitions=2)
    link = Link()
    bench.publish(0)
    bench.promise(link.wants(b"slow", 0))
    bench.publish(1)
    bench.promise(link.wants(b"quick", 1))
    bench.start()
    bench.worker.jobs.rotate(1)
    bench.worker.work()
    assert link.sent == []
    bench.worker.work()
    assert link.sent == [b"slow", b"quick"]


def test_nothing_is_sent_to_who_has_left() -> None:
    bench = Bench()
    link = Link()
    bench.publish()
    bench.promise(link.wants(b"a", 0))
    link.flow = None
    bench.start()
    bench.worker.work()
    assert link.sent == []


def test_a_barrier_is_told_when_it_has_gone_out() -> None:
    bench = Bench()
    link = Link()
    bench.publish()
    link.raised = True
    bench.promise(link.wants(b"suback", 0))
    assert link.barriers == 1 and not link.raised
    bench.start()
    assert link.releases == 0
    bench.worker.work()
    assert (link.sent, link.barriers, link.releases) == ([b"suback"], 0, 1)


def test_a_group_that_could_not_be_written_is_not_acknowledged_and_is_tried_again() -> None:
    bench = Bench()
    link = Link()
    bench.publish()
    bench.promise(link.wants(b"a", 0))
    bench.start()
    bench.files.broken = errno.EIO
    bench.worker.work()
    assert link.sent == [] and bench.store.partitions[0].offline is not None
    assert bench.store.partitions[0].committed_lsn == 0
    bench.files.broken = None
    bench.start()
    assert not bench.worker.jobs, "it waits before it tries again"
    bench.clock.monotonic += 2.0
    bench.start()
    bench.worker.work()
    assert link.sent == [b"a"] and bench.store.partitions[0].offline is None


def test_qos_0_lingers_and_what_somebody_waits_for_does_not() -> None:
    bench = Bench()
    bench.publish()
    bench.start()
    assert not bench.worker.jobs
    assert bench.commit.next_deadline() == pytest.approx(0.005)
    bench.clock.monotonic += 0.006
    bench.start()
    assert len(bench.worker.jobs) == 1


@pytest.mark.parametrize(("kib", "is_awaited", "lingers"), [(120, True, True), (140, True, False), (140, False, True)])
def test_what_makes_bulk_senders_wait_does_not_linger(kib: int, is_awaited: bool, lingers: bool) -> None:
    """They wait until it is written, and nobody may wait for it."""
    bench = Bench()
    bench.clock.monotonic = 100.0
    if is_awaited:
        bench.publish()
        bench.promise(Link().wants(b"1", 0))
        bench.start()
        while bench.worker.jobs:
            bench.worker.work()
    allowance = bench.commit.allowance(0)
    assert allowance is not None
    allowance.shared_bytes = 1 << 17
    append(bench.store.partitions[0], [(b"t", bytes(1024))] * kib)
    bench.start()
    assert bool(bench.worker.jobs) is not lingers


def test_a_broker_that_stops_lets_nothing_linger() -> None:
    bench = Bench()
    assert bench.commit.next_deadline() == inf
    bench.publish()
    bench.commit.is_draining = True
    bench.start()
    assert len(bench.worker.jobs) == 1


def test_a_shard_that_is_handed_over_writes_what_was_there_before_and_nothing_that_came_later() -> None:
    """Also what came while a group was being written: QoS 0 is nowhere else."""
    bench = Bench()
    bench.commit.urgent(0)
    bench.publish()
    bench.start()
    bench.publish()
    bench.commit.freeze(True)
    assert not bench.commit.is_settled()
    bench.start()
    bench.worker.work()
    assert not bench.commit.is_settled(), "what waited behind that group is to be written yet"
    bench.start()
    bench.worker.work()
    assert bench.commit.is_settled() and bench.store.own[0].written_lsn == 2
    bench.publish()
    bench.commit.freeze(True)
    bench.clock.monotonic += 1.0
    bench.start()
    assert bench.commit.is_settled() and not bench.commit.is_written() and not bench.worker.jobs
    bench.commit.freeze(False)
    bench.commit.urgent(0)
    bench.start()
    assert bench.worker.jobs, "nobody took office"


def test_with_durability_process_an_acknowledgement_leaves_in_the_turn_of_its_message() -> None:
    bench = Bench(durability="process")
    bench.worker.runs_in_place = True
    links = [Link(), Link()]
    bench.publish()
    bench.promise(links[0].wants(b"0", 0))
    bench.start()
    assert links[0].sent == [], "a thread opens the segment"
    bench.worker.work()
    bench.publish()
    bench.promise(links[1].wants(b"1", 0))
    bench.start()
    assert links[1].sent == [b"1"] and not bench.worker.jobs
    assert bench.store.partitions[0].committed_lsn == 2
    (segment,) = [path for name, path in bench.files.calls if name == "create" and path.endswith(".seg")]
    assert b"RQC1" in bench.files.after_kill().content(segment)[4096 + 64 :], "it is in the file"


def test_a_small_group_of_durability_disk_is_laid_out_on_the_loop_and_written_and_synced_by_a_thread() -> None:
    bench = Bench()
    bench.worker.runs_in_place = True
    bench.publish()
    bench.promise(Link().wants(b"0", 0))
    bench.start()
    bench.worker.work()  # opens the segment
    bench.worker.jobs.clear()  # zeros ahead
    link, before = Link(), len(bench.files.calls)
    bench.publish()
    bench.promise(link.wants(b"1", 0))
    bench.start()
    assert bench.files.calls[before:] == [] and not link.sent
    bench.worker.work()
    assert [name for name, _ in bench.files.calls[before:]] == ["write", "sync"]
    assert link.sent == [b"1"] and bench.store.partitions[0].committed_lsn == 2


@pytest.mark.parametrize("call", ["write", "sync"])
def test_a_small_group_that_fails_goes_to_another_segment_before_it_is_acknowledged(call: str) -> None:
    bench = Bench()
    bench.publish()
    bench.promise(Link().wants(b"0", 0))
    bench.start()
    bench.worker.work()
    bench.worker.jobs.clear()
    link = Link()
    bench.publish()
    bench.promise(link.wants(b"1", 0))
    bench.start()
    bench.files.fail[len(bench.files.calls) + (call == "sync")] = errno.EIO
    bench.worker.work()
    assert not link.sent and bench.store.partitions[0].committed_lsn == 1
    assert len(bench.worker.jobs) == 1, "a thread goes on in another segment"
    bench.worker.work()
    assert link.sent == [b"1"] and bench.store.partitions[0].committed_lsn == 2
    created = [path for name, path in bench.files.calls if name == "create" and path.endswith(".seg")]
    assert len(created) == 2
    assert b"RQC1" in bench.files.after_power_loss(lambda n: 0).content(created[1])[4096:]


@pytest.mark.parametrize("why", ["disk", "large", "mark"])
def test_what_may_wait_for_a_disk_never_runs_on_the_loop(why: str) -> None:
    bench = Bench(durability="disk" if why == "disk" else "process")
    bench.publish()
    bench.promise(Link().wants(b"0", 0))
    bench.start()
    bench.worker.work()
    bench.worker.jobs.clear()  # zeros ahead
    bench.worker.runs_in_place = True
    if why == "large":
        append(bench.store.partitions[0], [(b"t", b"x" * 1000)] * 40)
    elif why == "disk":
        bench.publish()
    bench.clock.monotonic += 1.0
    link = Link()
    bench.promise(link.wants(b"1", 0))
    bench.start()
    assert len(bench.worker.jobs) == 1


@pytest.mark.parametrize(
    ("is_journal", "has_copies", "seconds"), [(False, False, 0.05), (True, False, 2.0), (True, True, 0.05)]
)
def test_when_nothing_follows_the_watermark_is_noted(is_journal: bool, has_copies: bool, seconds: float) -> None:
    bench = Bench(has_copies=has_copies)
    store = bench.store
    partition = store.partitions[0]
    if is_journal:
        assert store.internal is not None
        partition = store.internal
    append(partition, [(b"t", b"x")])
    bench.commit.urgent(len(store.partitions) if is_journal else 0)
    bench.start()
    bench.worker.work()
    bench.start()  # zeros ahead
    while bench.worker.jobs:
        bench.worker.work()
    bench.clock.monotonic += seconds - 0.01
    bench.start()
    assert not bench.worker.jobs and bench.commit.next_deadline() == pytest.approx(seconds)
    bench.clock.monotonic += 0.01
    bench.start()
    bench.worker.work()
    assert partition.marked_lsn == partition.committed_lsn == 1

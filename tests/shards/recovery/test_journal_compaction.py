"""A journal takes little more of the disk than what is in force, and is written anew seldom enough for that to cost no
more than the journal itself. docs/decisions/0070-a-small-journal.md."""

from collections.abc import Sequence

import pytest

from commitlog import StreamSpec
from commitlog.testing.simulated_files import SimulatedFiles
from rumq.session.journal import entries as e
from rumq.shards.recovery.journal_reader import replay
from rumq.shards.recovery.journal_snapshot import FAST_GROWTH_BYTES, GROWTH_BYTES_MIN, SNAPSHOT_SECONDS_MIN
from tests.commitlog.records import NOW, index, write
from tests.conformance import wire
from tests.conformance.wire import Prop
from tests.faults.shard import Client, Shard
from tests.shards.recovery.world import Run

MIB = 1 << 20
PAGE = 4096
STATE = StreamSpec("_state", (), 1, "disk", 16 * MIB, 86_400)  # as a broker has it on a disk that is large enough
LASTING = {"clean": False, "properties": [(Prop.SESSION_EXPIRY, 3600)]}


class CountedFiles(SimulatedFiles):
    """written: bytes that went to files of the journal"""

    written = 0

    def write(self, handle: int, position: int, buffers: Sequence[bytes | bytearray | memoryview]) -> None:
        if "_state" in self._of(handle)[1]:
            self.written += sum(map(len, buffers))
        super().write(handle, position, buffers)


class Journal:
    """A journal to which something is written each second. largest: bytes that its segments took at most"""

    def __init__(self, files: SimulatedFiles, seed: int = 0) -> None:
        self.run = Run(files, seed, STATE)
        self.largest = self.turns = 0

    def second(self, seconds: float = 1.0, order_bytes: int = 10) -> None:
        """A turn in which the operator orders something, then what a shard does beside its loop."""
        run, partition = self.run, self.run.journal.partition
        run.hand.monotonic += seconds
        run.hand.now_us += round(seconds * 1e6)
        order = e.StandingOrder("ban", "client", "x" * order_bytes, 1, 1.0)
        run.journal.write_standing([order], run.hand.now_us)
        run.journal.end_turn()
        assert write(partition)
        self.largest = max(self.largest, partition.segments.bytes)
        index(partition)
        removal = run.journal.take_removal()
        if removal is not None:
            removal.run()
            partition.removed(removal)
        self.turns += 1

    @property
    def snapshot_lsn(self) -> int:
        """Of the last whole snapshot in the files."""
        return replay(self.run.store, self.run.journal.partition, self.run.hand.tell).snapshot[0]


def test_the_journal_of_a_small_broker_takes_the_floor_and_little_more() -> None:
    """Each second adds a page, in which are some bytes of records: pages are what the disk has no more of."""
    journal = Journal(SimulatedFiles())
    for _ in range(1000):
        journal.second()
    assert GROWTH_BYTES_MIN < journal.largest < GROWTH_BYTES_MIN + 12 * PAGE
    assert len(journal.run.journal.partition.segments.files) == 1


def test_so_does_that_of_a_broker_with_lone_messages() -> None:
    """The whole shard: a lone message is acknowledged to its publisher and by its subscriber, each in a turn."""
    shard = Shard(SimulatedFiles(), state=STATE)
    reader = Client(shard, "r", 5, **LASTING)
    reader.say(wire.subscribe(1, [("t", 1)]))
    reader.take()
    publisher = Client(shard, "p", 5)
    assert shard.store.internal is not None
    segments, largest, first = shard.store.internal.segments, 0, 0
    for number in range(700):
        publisher.say(wire.publish("t", b"x" * 42, 1, 1 + number))
        (message,) = reader.take()
        assert message.packet_id is not None
        reader.say(wire.ack(wire.Kind.PUBACK, message.packet_id))
        shard.after(0.1)
        largest, first = max(largest, segments.bytes), segments.first_lsn
    assert first > 0 and largest < 2 * MIB
    assert not [said for said in shard.told("log.trimmed") if said["stream"] == "_state"], "that is nobody's loss"
    shard.end()


@pytest.mark.parametrize(("sessions", "name_bytes"), [(1, 10), (700, 6000)])
def test_snapshots_write_no_more_than_the_journal_does_without_them(sessions: int, name_bytes: int) -> None:
    """With little in force the floor bounds them, with much the size of the last one."""
    files = CountedFiles()
    journal = Journal(files)
    for number in range(sessions):
        journal.run.session(f"{number:0{name_bytes}d}")
    journal.second()
    begin = files.written
    for _ in range(4000):
        journal.second()
    own = journal.turns * PAGE
    assert files.written - begin < 2 * own
    assert journal.run.journal.partition.first_lsn > 0, "there were some"


def test_a_journal_that_grows_fast_is_written_anew_after_some_seconds_or_much_growth() -> None:
    journal = Journal(SimulatedFiles())
    journal.second(order_bytes=2 * MIB)
    assert (first := journal.snapshot_lsn) > 0
    journal.second(order_bytes=2 * MIB)
    assert journal.snapshot_lsn == first
    journal.second(SNAPSHOT_SECONDS_MIN, order_bytes=10)
    assert (second := journal.snapshot_lsn) > first
    for _ in range(4):
        journal.second(order_bytes=FAST_GROWTH_BYTES // 4 + 1)
    assert journal.snapshot_lsn > second


def test_runs_that_end_soon_leave_no_more_than_long_ones() -> None:
    files = SimulatedFiles()
    for number in range(40):
        journal = Journal(files, number)
        for _ in range(30):
            journal.second()
        assert journal.largest < GROWTH_BYTES_MIN + 100 * PAGE
        files = files.after_kill()


def test_what_a_run_did_not_come_to_remove_goes_in_the_next_one() -> None:
    files = SimulatedFiles()
    run = Run(files, 0, STATE)
    run.session("pump")
    run.flush()
    run.journal.write_snapshot(NOW)
    run.write()
    again = Run(files.after_kill(), 1, STATE)
    again.write()
    index(again.journal.partition)
    removal = again.journal.take_removal()
    assert removal is not None
    removal.run()
    again.journal.partition.removed(removal)
    last = Run(again.store._files.after_kill(), 2, STATE)  # type: ignore[attr-defined]
    assert last.find("pump") is not None

"""Whatever happens to a copy while it is read: a reader sees committed records of one log, or is sent to the leader."""

import errno
import random
from collections.abc import Callable
from functools import partial
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from commitlog.replica.copy_reader import CopyRead, CopyReader
from commitlog.replica.mirror_partition import MirrorPartition
from commitlog.replica.replica_state import StoredReplicaState, load_state
from commitlog.testing.simulated_files import SimulatedFiles
from tests.commitlog.records import (
    NOW,
    Record,
    append,
    index,
    mark,
    opened,
    records_of,
    rows_of,
    segments,
    some_records,
    write,
)
from tests.commitlog.replica.copying import SEGMENT_BYTES, copy, mirror_of, states

RETENTION_BYTES = 6 * SEGMENT_BYTES
LOOKS = ("open", "read", "size", "names", "exists")


class Watched:
    """Files of the reader. before: called before each look at the disk, with its number"""

    def __init__(self, files: SimulatedFiles) -> None:
        self._files = files
        self.looks = 0
        self.before: Callable[[int], None] = lambda number: None

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._files, name)
        return partial(self._look, call) if name in LOOKS else call

    def _look(self, call: Callable[..., Any], *args: Any) -> Any:
        self.looks += 1
        self.before(self.looks)
        return call(*args)


class Node:
    """A copy, its state, and a reader in another process of this node. named: what the reader has named so far"""

    def __init__(self) -> None:
        self.files = SimulatedFiles()
        self.mirror: MirrorPartition = mirror_of(self.files)
        self.state: StoredReplicaState = load_state(self.files, "data", 0, "disk", has_log=False)
        self.looking = Watched(self.files.beside())
        self.reader = CopyReader(self.looking, "data", 0, "main", 1, 0)  # type: ignore[arg-type]
        self.named: dict[int, bytes] = {}

    def read(self, lsn: int, epoch: int, bytes_max: int = 1 << 20) -> CopyRead:
        found = self.reader.read(lsn, epoch, bytes_max)
        self.named.update(found.names)
        return found

    def records(self, found: CopyRead) -> list[tuple[int, Record]]:
        rows = [seen for chunk in found.chunks for seen in rows_of(chunk, (self.named, {}))]
        return list(zip([seen.lsn for seen in rows], records_of(rows), strict=True))


class Cluster:
    """A leader, and a node that follows it. Epoch -> its log; committed: of each"""

    def __init__(self) -> None:
        self.node = Node()
        self.epoch = 0
        self.logs: dict[int, list[Record]] = {}
        self.committed: dict[int, int] = {}
        self.lead(SimulatedFiles(), [])

    def lead(self, files: SimulatedFiles, log: list[Record], committed: int = 0) -> None:
        """A new leader, on what it adopted."""
        self.epoch += 1
        self.files = files
        self.partition = opened(
            files, segment_bytes_max=SEGMENT_BYTES, seed=1000 * self.epoch, epoch=self.epoch,
            retention_bytes_max=RETENTION_BYTES,
        ).partitions[0]  # type: ignore[assignment]  # fmt: skip
        self.logs[self.epoch], self.committed[self.epoch] = list(log), committed
        self.partition.note_replicated(committed)  # type: ignore[attr-defined]

    def append(self, records: list[Record]) -> None:
        append(self.partition, records)  # type: ignore[arg-type]
        assert write(self.partition)  # type: ignore[arg-type]
        self.logs[self.epoch] += records

    def commit(self, lsn: int | None = None) -> None:
        lsn = len(self.logs[self.epoch]) if lsn is None else lsn
        self.committed[self.epoch] = max(self.committed[self.epoch], lsn)
        self.partition.note_replicated(lsn)  # type: ignore[attr-defined]

    def mark(self) -> None:
        mark(self.partition)  # type: ignore[arg-type]

    def follow(self, writes_max: int = 1 << 30) -> None:
        """The node gets what it lacks, or some of it; the term is open there once it has all."""
        node, ours = self.node, states(self.partition)  # type: ignore[arg-type]
        node.state.promise(self.epoch)
        copy(self.files, ours, self.partition.first_lsn, node.mirror, bytes_max=1, writes_max=writes_max)
        if node.mirror.next_lsn == self.partition.next_lsn:
            node.state.open(self.epoch)

    def trim(self) -> None:
        """Retention of the leader, and of the copy."""
        index(self.partition)  # type: ignore[arg-type]
        removal = self.partition.take_retention(NOW)  # type: ignore[attr-defined]
        if removal is not None:
            removal.run()
            self.partition.removed(removal)  # type: ignore[attr-defined]
        self.node.mirror.trim(self.partition.first_lsn)

    def succeed(self, kept: int) -> None:
        """Another node leads: its log has what is committed, and `kept` records at most behind it."""
        before, committed = self.logs[self.epoch], self.committed[self.epoch]
        files = SimulatedFiles()
        other = mirror_of(files)
        ours = states(self.partition)  # type: ignore[arg-type]
        reached = None
        while other.next_lsn < committed + kept and reached != other.tail:
            reached = other.tail
            copy(self.files, ours, self.partition.first_lsn, other, bytes_max=1, writes_max=1)
        other.sync()
        other.close()
        self.lead(files, before[: other.next_lsn], committed)

    def force(self, records: list[Record]) -> None:
        """An operator made a copy lead that has nothing of what was committed."""
        if self.partition.first_lsn or self.node.mirror.first_lsn:
            return  # a log that begins at 0 cannot follow what was trimmed
        self.lead(SimulatedFiles(), [])
        self.append(records)
        self.commit()
        self.node.mirror.close()
        self.node.mirror = mirror_of(self.node.files)


def test_committed_records_are_read_and_named() -> None:
    cluster = Cluster()
    cluster.append(some_records(60))
    cluster.commit()
    cluster.mark()
    cluster.follow()
    found = cluster.node.read(0, 1)
    assert cluster.node.records(found) == list(enumerate(some_records(60)))
    assert sorted(found.names) == [(0, b"t/0"), (1, b"t/1"), (2, b"t/2")]
    again = cluster.node.read(30, 1)
    assert again.chunks[0].base_lsn <= 30 < again.chunks[0].next_lsn and again.names == []
    assert cluster.node.read(60, 1) == CopyRead([], []) and cluster.node.reader.end_lsn == 60


def test_what_no_mark_proves_is_the_leader_s_to_show() -> None:
    """An old leader's tail looks like any other record until the copy is cut."""
    cluster = Cluster()
    cluster.append(some_records(10))
    cluster.commit()
    cluster.append(some_records(10, 10))  # its chunk says that 10 are committed
    cluster.follow()
    assert len(cluster.node.records(cluster.node.read(0, 1))) == 10
    assert not cluster.node.read(10, 1).chunks


def test_a_copy_of_an_earlier_term_or_in_a_change_of_leaders_is_not_read() -> None:
    cluster = Cluster()
    cluster.append(some_records(10))
    cluster.commit()
    cluster.mark()
    cluster.follow()
    node = cluster.node
    assert node.read(0, 1).chunks
    assert not node.read(0, 2).chunks, "the leader's term is a later one"
    node.state.promise(2)
    assert not node.read(0, 1).chunks, "it may be cut at any moment"
    node.state.open(2)
    assert node.read(0, 2).chunks
    node.state.distrust()
    assert not node.read(0, 2).chunks, "it is doubted"


def test_a_leader_that_changes_during_a_read_ends_it() -> None:
    cluster = Cluster()
    cluster.append(some_records(10))
    cluster.commit()
    cluster.mark()
    cluster.follow()
    node = cluster.node
    node.read(0, 1)
    reads = node.looking.looks
    node.read(0, 1)
    last = 2 * node.looking.looks - reads - 3  # of the next read: then it looks at the state once more

    def cut(number: int) -> None:
        if number == last:
            node.state.promise(2)

    node.looking.before = cut
    found = node.read(0, 1)
    assert node.looking.looks >= last and not found.chunks and not found.names
    node.looking.before = lambda number: None
    node.state.open(2)
    assert node.read(0, 2).names, "names that were not returned come again"


def test_a_damaged_chunk_is_left_to_the_leader_and_told() -> None:
    cluster = Cluster()
    for first in range(0, 60, 10):
        cluster.append(some_records(10, first))
    cluster.commit()
    cluster.mark()
    cluster.follow()
    node = cluster.node
    path = segments(node.files)[0]
    view = node.read(0, 1)
    assert len(node.records(view)) == 60
    content = node.files.content(path)
    node.files.damage(path, content.index(b"payload 25"))
    before = node.read(0, 1)
    assert [lsn for lsn, _ in node.records(before)] == list(range(20)) and not before.why
    damaged = node.read(20, 1)
    assert not damaged.chunks and "do not match their checksum" in damaged.why
    assert [lsn for lsn, _ in node.records(node.read(30, 1))] == list(range(30, 60))


def test_a_disk_that_fails_is_an_error_wherever_it_does_and_names_come_again() -> None:
    cluster = Cluster()
    cluster.append(some_records(10))
    cluster.append([(b"other", b"1")])
    cluster.commit()
    cluster.mark()
    cluster.follow()
    broken = is_over = 0
    while not is_over:
        looking = Watched(cluster.node.files.beside())
        reader = CopyReader(looking, "data", 0, "main", 1, 0)  # type: ignore[arg-type]
        assert [name for _, name in reader.read(0, 1, 1).names] == [b"t/0", b"t/1", b"t/2"]
        broken += 1
        at = looking.looks + broken

        def fail(number: int, at: int = at) -> None:
            if number == at:
                raise OSError(errno.EIO, "broken")

        looking.before = fail
        try:
            reader.read(10, 1, 1 << 20)
            is_over = 1
        except OSError:
            assert (3, b"other") in reader.read(10, 1, 1 << 20).names
    assert broken > 5


def test_what_was_trimmed_meanwhile_is_the_leader_s_to_tell_and_no_damage() -> None:
    cluster = Cluster()
    for _ in range(20):
        cluster.append(some_records(200, 1))
    cluster.commit()
    cluster.mark()
    cluster.follow()
    assert cluster.node.read(0, 1).chunks
    cluster.trim()
    first = cluster.partition.first_lsn
    assert cluster.node.read(0, 1) == CopyRead([], [])
    assert cluster.node.read(first, 1).chunks[0].base_lsn == first


def test_a_copy_that_was_filled_anew_is_read_anew() -> None:
    cluster = Cluster()
    cluster.append(some_records(10))
    cluster.commit()
    cluster.mark()
    cluster.follow()
    node = cluster.node
    node.read(0, 1)
    cluster.force([(b"other", b"1"), (b"t/0", b"2")])
    cluster.mark()
    cluster.follow()
    assert node.records(node.read(0, 2)) == [(0, (b"other", b"1")), (1, (b"t/0", b"2"))]


def test_a_node_without_a_copy_sends_readers_to_the_leader() -> None:
    node = Node()
    assert not CopyReader(node.files, "data", 7, "main", 1, 0).read(0, 1, 1 << 20).chunks
    node.state.open(1)
    assert not CopyReader(node.files, "data", 0, "main", 1, 5).read(0, 1, 1 << 20).chunks


ACTIONS = (
    ["append"] * 4 + ["commit", "mark", "follow"] * 3 + ["some"] * 2 + ["succeed", "force", "promise", "trim", "index"]
)
TOPICS = [b"a", b"b/1", b"c", b"d/2"]


class Schedule:
    """A reader that follows a log while things happen. known: the epoch of the leader that it was told of last

    reads: of them so many brought records"""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.cluster = Cluster()
        self.node = self.cluster.node
        self.known, self.cursor, self.reads = 1, 0, 0

    def run(self, steps: int) -> None:
        for _ in range(steps):
            choice = self.random.random()
            if choice < 0.5:
                self.act()
            elif choice < 0.6:
                self.link()
            else:
                self.read(self.random.randrange(1, 60) if choice < 0.8 else 0)

    def batch(self) -> list[Record]:
        draw = self.random
        return [(draw.choice(TOPICS), draw.randbytes(draw.choice([3, 900]))) for _ in range(draw.randrange(1, 9))]

    def act(self) -> None:
        cluster, node, draw = self.cluster, self.node, self.random
        action = draw.choice(ACTIONS)
        first, end = cluster.committed[cluster.epoch], len(cluster.logs[cluster.epoch])
        if action == "append":
            for _ in range(draw.randrange(1, 6)):
                cluster.append(self.batch())
        elif action == "commit":
            cluster.commit(draw.choice([end, draw.randint(first, end)]))
        elif action == "mark":
            cluster.mark()
        elif action == "follow":
            cluster.follow()
        elif action == "some":
            cluster.follow(draw.randrange(1, 6))
        elif action == "succeed":
            cluster.succeed(draw.randrange(0, 12))
        elif action == "force":
            cluster.force([record for _ in range(draw.randrange(1, 6)) for record in self.batch()])
        elif action == "promise":
            node.state.promise(cluster.epoch)
        elif node.state.opened != cluster.epoch:
            return
        elif action == "trim":
            cluster.trim()
        elif action == "index":
            index(cluster.partition)  # type: ignore[arg-type]
            node.mirror.note_committed(min(node.mirror.next_lsn, first))
            while (job := node.mirror.take_seal_job()) is not None:
                job.run()

    def link(self) -> None:
        """The reader hears of the leader, and goes on with its log; or another one begins somewhere."""
        self.known = self.cluster.epoch
        self.cursor = self.random.randint(0, self.cluster.committed[self.known])

    def read(self, looks: int) -> None:
        """looks: after so many looks at the disk something happens; 0: nothing does"""
        looking = self.node.looking
        at = looking.looks + looks

        def interrupt(number: int) -> None:
            if number == at:
                looking.before = lambda number: None
                for _ in range(self.random.randrange(1, 4)):
                    self.act()

        looking.before = interrupt if looks else lambda number: None
        found = self.node.read(self.cursor, self.known, self.random.choice([1, 4000, 1 << 20]))
        looking.before = lambda number: None
        if not found.chunks:
            return
        self.reads += 1
        read = self.node.records(found)
        lsns = [lsn for lsn, _ in read]
        assert lsns == list(range(lsns[0], lsns[-1] + 1)) and lsns[0] <= self.cursor <= lsns[-1]
        logs = self.cluster.logs.items()
        terms = [
            epoch
            for epoch, log in logs
            if epoch >= self.known
            and lsns[-1] < self.cluster.committed[epoch]
            and [record for _, record in read] == log[lsns[0] : lsns[-1] + 1]
        ]
        assert terms, "what was read was committed in the leader's term, or in a later one"
        self.cursor = lsns[-1] + 1


@settings(max_examples=250, deadline=None)
@given(st.integers(0, 1 << 32))
def test_a_reader_sees_committed_records_of_the_leader_s_log_whatever_happens_meanwhile(seed: int) -> None:
    Schedule(seed).run(60)


def test_most_reads_of_the_schedules_bring_records() -> None:
    """Else the test above would show that nothing is read."""
    schedules = [Schedule(seed) for seed in range(20)]
    for schedule in schedules:
        schedule.run(60)
    assert sum(schedule.reads for schedule in schedules) > 60

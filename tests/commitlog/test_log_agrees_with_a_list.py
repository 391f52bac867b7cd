"""However a log is filled, stopped, killed, cut off from power and refused by its disk, it reads like a list, and what
was committed stays. docs/reference/log-format.md, "Recovery"."""

import errno
from collections.abc import Callable

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from commitlog.read.verify import verify
from commitlog.testing.simulated_files import SimulatedFiles
from tests.commitlog.records import (
    NOW,
    Seen,
    append,
    everything,
    index,
    mark,
    opened,
    preallocate,
    view,
    viewed,
    write,
)

TOPICS = st.sampled_from([b"a", b"b/c", b"long/topic/name"])
RECORDS = st.lists(st.tuples(TOPICS, st.binary(max_size=60)), min_size=1, max_size=8)
CHOICES = st.lists(st.integers(0, 11), min_size=1, max_size=40)
APART_US = 4_000_000_000  # too far apart for one chunk, and for one segment
SEGMENT_BYTES = {"disk": 20_000, "process": 7_000}  # of a few chunks: the log rolls often


class PowerLost(Exception):
    pass


def power_for(calls: int) -> Callable[[], None]:
    """Called before each call of the disk: so many are made, and then the power is gone."""
    left = calls

    def before_call() -> None:
        nonlocal left
        if not left:
            raise PowerLost
        left -= 1

    return before_call


class LogAgreesWithAList(RuleBasedStateMachine):
    @initialize(
        durability=st.sampled_from(["disk", "process"]),
        hot=st.sampled_from([0, 1 << 20]),
        sector_bytes=st.sampled_from([512, 4096]),
    )
    def start(self, durability: str, hot: int, sector_bytes: int) -> None:
        self.durability, self.hot = durability, hot
        self.files = SimulatedFiles(sector_bytes=sector_bytes)
        self.model: list[Seen] = []
        self.offsets: dict[bytes, int] = {}
        self.now = NOW
        self.starts = 0
        self.reported: list[tuple[int, int]] = []
        self._open()

    def _open(self) -> None:
        self.starts += 1
        self.store = opened(
            self.files, durability=self.durability, segment_bytes_max=SEGMENT_BYTES[self.durability], hot=self.hot,
            seed=1000 * self.starts,
        )  # fmt: skip
        self.partition = self.store.partitions[0]

    def _reopen(self, committed: int) -> None:
        self._open()
        assert self.partition.next_lsn >= committed, "what was committed is there"
        assert self.store.recovered[0].gaps == []
        del self.model[self.partition.next_lsn :]
        self.offsets = {}
        for seen in self.model:
            self.offsets[seen.topic] = seen.offset + 1

    @rule(
        records=RECORDS,
        later=st.one_of(st.integers(0, 10_000), st.just(APART_US)),
        who=st.sampled_from(["", "dev", "other"]),
        qos2=st.booleans(),
    )
    def append(self, records: list[tuple[bytes, bytes]], later: int, who: str, qos2: bool) -> None:
        self.now += later
        tags = {row: 7 + row for row in range(0, len(records), 2)} if qos2 else {}
        append(self.partition, records, self.now, who, tags)
        for row, (topic, payload) in enumerate(records):
            offset = self.offsets.get(topic, 0)
            self.offsets[topic] = offset + 1
            self.model.append(Seen(len(self.model), topic, offset, payload, self.now, who.encode(), tags.get(row, 0)))

    @rule()
    def write(self) -> None:
        assert write(self.partition)

    @rule()
    def index(self) -> None:
        index(self.partition)

    @rule()
    def mark(self) -> None:
        mark(self.partition)

    @rule(always=st.booleans())
    def preallocate(self, always: bool) -> None:
        assert preallocate(self.partition, always=always)

    @rule(call=st.integers(0, 3), number=st.sampled_from([errno.EIO, errno.ENOSPC]), choices=CHOICES)
    def preallocate_with_a_fault(self, call: int, number: int, choices: list[int]) -> None:
        self.files.choose = chooser(choices)
        self.files.fail = {len(self.files.calls) + call: number}
        preallocate(self.partition, always=True)
        self.files.fail = {}
        assert self.partition.offline is None

    @rule(call=st.integers(0, 3), choices=CHOICES)
    def lose_power_while_preallocating(self, call: int, choices: list[int]) -> None:
        if self.durability == "process":
            return
        committed = self.partition.committed_lsn
        self.files.before_call = power_for(call)
        try:
            preallocate(self.partition, always=True)
        except PowerLost:
            pass
        self.files = self.files.after_power_loss(chooser(choices))
        self._reopen(committed)

    @rule(call=st.integers(0, 12), number=st.sampled_from([errno.EIO, errno.ENOSPC]), choices=CHOICES)
    def write_with_a_fault(self, call: int, number: int, choices: list[int]) -> None:
        """One call fails, and has done part of its work: the group goes elsewhere."""
        self.files.choose = chooser(choices)
        self.files.fail = {len(self.files.calls) + call: number}
        assert write(self.partition)
        self.files.fail = {}

    @rule(number=st.sampled_from([errno.EIO, errno.ENOSPC]), choices=CHOICES)
    def disk_is_gone_for_a_while(self, number: int, choices: list[int]) -> None:
        committed, waiting = self.partition.committed_lsn, self.partition.next_lsn
        self.files.choose = chooser(choices)
        self.files.broken = number
        write(self.partition)
        assert self.partition.committed_lsn == committed
        self.files.broken = None
        assert write(self.partition)
        assert self.partition.committed_lsn == waiting

    @rule(number=st.sampled_from([errno.EIO, errno.ENOSPC]), choices=CHOICES, kill=st.booleans())
    def disk_is_gone_and_then_the_process(self, number: int, choices: list[int], kill: bool) -> None:
        committed = self.partition.committed_lsn
        self.files.choose = chooser(choices)
        self.files.broken = number
        write(self.partition)
        if kill or self.durability == "process":
            self.files = self.files.after_kill()
        else:
            self.files = self.files.after_power_loss(chooser(choices))
        self._reopen(committed)

    @rule()
    def kill(self) -> None:
        committed = self.partition.committed_lsn
        self.files = self.files.after_kill()
        self._reopen(committed)

    @rule(call=st.integers(0, 12), choices=CHOICES)
    def lose_power_inside_a_group(self, call: int, choices: list[int]) -> None:
        if self.durability == "process":
            return
        committed = self.partition.committed_lsn
        self.files.before_call = power_for(call)
        try:
            write(self.partition)
            committed = self.partition.committed_lsn
        except PowerLost:
            pass
        self.files = self.files.after_power_loss(chooser(choices))
        self._reopen(committed)

    @rule(choices=CHOICES)
    def lose_power(self, choices: list[int]) -> None:
        if self.durability == "process":
            return  # promises nothing for that
        committed = self.partition.committed_lsn
        self.files = self.files.after_power_loss(chooser(choices))
        self._reopen(committed)

    @rule()
    def stop(self) -> None:
        write(self.partition)
        committed = self.partition.committed_lsn
        assert self.store.close() == []
        self._reopen(committed)
        assert self.store.recovered[0].clean

    @invariant()
    def reads_like_the_list(self) -> None:
        if hasattr(self, "partition"):
            found, gaps = everything(self.partition)
            assert gaps == []
            assert found == self.model[: self.partition.committed_lsn]

    @invariant()
    def another_process_reads_like_it(self) -> None:
        """Nobody lives that LOCK names, so every whole chunk counts: at least what was committed."""
        if hasattr(self, "partition"):
            partition = view(self.files)
            found, gaps = viewed(partition)
            assert gaps == []
            assert found == self.model[: len(found)]
            assert len(found) >= self.partition.committed_lsn

    def teardown(self) -> None:
        if hasattr(self, "partition"):
            assert [f for f in verify(self.files, "data") if f.severity != "note"] == []


def chooser(choices: list[int]):  # type: ignore[no-untyped-def]
    """Choices out of a list, over and over."""
    at = -1

    def choose(n: int) -> int:
        nonlocal at
        at += 1
        return choices[at % len(choices)] % n

    return choose


LogAgreesWithAList.TestCase.settings = settings(max_examples=150, stateful_step_count=30, deadline=None)
TestLogAgreesWithAList = LogAgreesWithAList.TestCase

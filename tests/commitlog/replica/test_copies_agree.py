"""However two nodes lead, follow, are killed and cut off from power: what both had synced stays, on both, in order."""

import copy as copying
import errno

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from commitlog.replica.inventory import inventory
from commitlog.testing.simulated_files import SimulatedFiles
from tests.commitlog import records
from tests.commitlog.records import DIRECTORY, NOW, Seen, append, opened, preallocate, write
from tests.commitlog.replica.copying import SEGMENT_BYTES, copy_all, mirror_of, pack, recovered
from tests.commitlog.test_log_agrees_with_a_list import CHOICES, RECORDS, PowerLost, chooser, power_for

APART_US = 4_000_000_000  # too far apart for one chunk, and for one segment
FAULTS = st.sampled_from([errno.EIO, errno.ENOSPC])


class CopiesAgree(RuleBasedStateMachine):
    """model: of the leader's log; copied: of the follower's; committed: what both have synced

    is_short: the copy began anew and has not caught up: its mark says what it lacks (decision 55)"""

    @initialize(sector_bytes=st.sampled_from([512, 4096]))
    def start(self, sector_bytes: int) -> None:
        self.now, self.starts, self.committed = NOW, 0, 0
        self.salts = self.packed = 0
        self.files = SimulatedFiles(sector_bytes=sector_bytes)
        self.others = SimulatedFiles(sector_bytes=sector_bytes)
        self.model: list[Seen] = []
        self.copied: list[Seen] = []
        self.is_aligned, self.is_short = True, False
        self._lead()
        self.mirror = mirror_of(self.others)
        self.first_lsn = 0

    def _lead(self) -> None:
        self.starts += 1
        store = opened(self.files, segment_bytes_max=SEGMENT_BYTES, seed=1000 * self.starts)
        self.partition = store.partitions[0]
        assert store.recovered[0].gaps == []
        assert self.partition.next_lsn >= self.committed
        self.partition.note_replicated(self.committed)
        del self.model[self.partition.next_lsn :]
        self.offsets: dict[bytes, int] = {}
        for seen in self.model:
            self.offsets[seen.topic] = seen.offset + 1
        self.is_aligned = False  # what the follower has beyond it is not of this log

    def _began_anew(self) -> bool:
        """Whether the copy begins earlier than when this was asked before; notes whether it is short."""
        is_anew = self.mirror.first_lsn < self.first_lsn
        self.first_lsn = self.mirror.first_lsn
        self.is_short = (self.is_short or is_anew) and self.mirror.next_lsn < self.committed
        return is_anew

    def _synced(self) -> int:
        """What stays of the copy, however the power goes."""
        return self.mirror.synced_lsn if self.is_short else self.committed

    def _follow(self, synced: int, power_lost: bool) -> None:
        """A new process, with what the other one left: a prefix of what it had, or of what it was being sent."""
        is_doubted = power_lost or bool(self.mirror.doubt)
        self.mirror = mirror_of(self.others)
        if self._began_anew():
            synced = self.mirror.first_lsn
        self.is_aligned = False
        assert is_doubted or not self.mirror.doubt
        assert inventory(self.others, DIRECTORY, "main", 0) == self.mirror.segments
        if self.mirror.doubt:
            return
        first, end = self.mirror.first_lsn, self.mirror.next_lsn
        assert end >= synced, "what was synced is there"
        seen = recovered(SimulatedFiles(copying.deepcopy(self.others.root)))
        known = [log[first:end] for log in (self.copied, self.model) if len(log) >= end]
        assert seen in known
        self.copied = self.copied[:first] + seen if len(self.copied) >= first else self.model[:first] + seen

    @rule(
        batches=st.lists(RECORDS, min_size=1, max_size=5),
        later=st.sampled_from([1, 1000, APART_US]),
        who=st.sampled_from(["", "dev"]),
    )
    def append(self, batches: list[list[tuple[bytes, bytes]]], later: int, who: str) -> None:
        for batch in batches:
            self.now += later
            append(self.partition, batch, self.now, who, {0: 5})
            for row, (topic, payload) in enumerate(batch):
                offset = self.offsets.get(topic, 0)
                self.offsets[topic] = offset + 1
                tag = 0 if row else 5
                self.model.append(Seen(len(self.model), topic, offset, payload, self.now, who.encode(), tag))
            assert write(self.partition)

    @rule()
    def mark(self) -> None:
        records.mark(self.partition)

    @rule()
    def preallocate(self) -> None:
        preallocate(self.partition, always=True)

    @rule(batch=RECORDS, call=st.integers(0, 5), number=FAULTS, choices=CHOICES)
    def append_with_a_fault(self, batch: list[tuple[bytes, bytes]], call: int, number: int, choices: list[int]) -> None:
        """The leader gives its segment up: of that segment the follower may have more."""
        self.files.choose = chooser(choices)
        self.files.fail = {len(self.files.calls) + call: number}
        self.append([batch], 1, "dev")
        self.files.fail = {}

    def _send(self, bytes_max: int, writes_between: int, writes_max: int) -> None:
        copy_all(
            self.files, self.partition, self.mirror, bytes_max=bytes_max, writes_between=writes_between,
            writes_max=writes_max,
        )  # fmt: skip
        self.is_aligned = True
        self.copied = self.model[: self.mirror.next_lsn]
        self.committed = max(self.committed, min(self.mirror.synced_lsn, self.partition.durable_lsn))
        self.partition.note_replicated(self.committed)
        self.mirror.note_committed(min(self.committed, self.mirror.synced_lsn))
        self._began_anew()

    @rule(
        bytes_max=st.sampled_from([1, 5000, 1 << 16]),
        writes_between=st.integers(1, 4),
        writes_max=st.sampled_from([0, 1, 2, 3, 1 << 30, 1 << 30]),
    )
    def send(self, bytes_max: int, writes_between: int, writes_max: int) -> None:
        self._send(bytes_max, writes_between, writes_max)

    @rule(
        bytes_max=st.sampled_from([1, 5000, 1 << 16]), writes_between=st.integers(1, 4), call=st.integers(0, 25),
        choices=CHOICES,
    )  # fmt: skip
    def lose_power_while_following(self, bytes_max: int, writes_between: int, call: int, choices: list[int]) -> None:
        self.others.before_call = power_for(call)
        before = self._synced()
        try:
            self._send(bytes_max, writes_between, 1 << 30)
            synced = self.mirror.synced_lsn
        except PowerLost:
            synced = before
        self.others = self.others.after_power_loss(chooser(choices))
        self._follow(synced, power_lost=True)

    @rule(
        bytes_max=st.sampled_from([1, 5000]), writes_between=st.integers(1, 4), call=st.integers(0, 25), number=FAULTS,
        choices=CHOICES,
    )  # fmt: skip
    def disk_fails_while_following(
        self, bytes_max: int, writes_between: int, call: int, number: int, choices: list[int]
    ) -> None:
        self.others.choose = chooser(choices)
        self.others.fail = {len(self.others.calls) + call: number}
        before = self._synced()
        try:
            self._send(bytes_max, writes_between, 1 << 30)
            return
        except OSError:
            assert self.mirror.failed
        finally:
            self.others.fail = {}
        self.others = self.others.after_kill()
        self._follow(before, power_lost=False)

    @rule()
    def kill_follower(self) -> None:
        synced = self.mirror.next_lsn
        self.others = self.others.after_kill()
        self._follow(synced, power_lost=False)

    @rule(choices=CHOICES)
    def follower_loses_power(self, choices: list[int]) -> None:
        synced = self.mirror.synced_lsn
        self.others = self.others.after_power_loss(chooser(choices))
        self._follow(synced, power_lost=True)

    @rule(choices=CHOICES)
    def leader_loses_power_and_comes_back(self, choices: list[int]) -> None:
        self.files = self.files.after_power_loss(chooser(choices))
        self._lead()

    @precondition(lambda self: not (self.mirror.doubt or self.mirror.lacks_names))
    @precondition(lambda self: self.mirror.next_lsn >= self.committed)
    @rule(choices=CHOICES, power=st.booleans())
    def change_places(self, choices: list[int], power: bool) -> None:
        """The follower is made leader; the old leader follows, with a tail of its own."""
        self.mirror.sync()
        self.mirror.close()
        others = self.others.after_kill()
        self.others = self.files.after_power_loss(chooser(choices)) if power else self.files.after_kill()
        self.files = others
        self.model, self.copied = self.copied, self.model
        self._lead()
        self.first_lsn = 0  # of another copy
        self._follow(self.committed, power_lost=power)

    @rule(count=st.integers(1, 2))
    def trim(self, count: int) -> None:
        files = self.partition.segments.files
        if len(files) > count and files[count].base_lsn <= self.committed:
            records.index(self.partition)
            removal = self.partition.take_removal(files[count].base_lsn)
            if removal is not None:
                removal.run()
                self.partition.removed(removal)
                if self.is_aligned:
                    self.mirror.trim(removal.first_lsn)
                    self._began_anew()

    @rule()
    def index(self) -> None:
        committed = self.mirror.committed_lsn
        if committed <= self.mirror.synced_lsn and self.is_aligned:
            while (job := self.mirror.take_seal_job()) is not None:
                job.run()

    def _salt(self) -> int:
        self.salts += 2
        return (1 << 40) + 1000 * self.salts + 1

    @rule()
    def pack_leader(self) -> None:
        """Without a look at what the copy has: it may have a part of what is packed."""
        records.index(self.partition)
        self.packed += records.pack(self.partition, self.committed)

    @rule(call=st.integers(0, 25), choices=CHOICES)
    def leader_loses_power_while_it_packs(self, call: int, choices: list[int]) -> None:
        records.index(self.partition)
        self.files.before_call = power_for(call)
        try:
            records.pack(self.partition, self.committed)
        except PowerLost:
            pass
        self.files = self.files.after_power_loss(chooser(choices))
        self._lead()

    @rule()
    def pack_copy(self) -> None:
        if not self.mirror.failed:
            self.index()
            pack(self.mirror, self._salt())

    @rule(call=st.integers(0, 25), choices=CHOICES)
    def follower_loses_power_while_it_packs(self, call: int, choices: list[int]) -> None:
        self.index()
        synced = self._synced()
        self.others.before_call = power_for(call)
        try:
            pack(self.mirror, self._salt())
        except PowerLost:
            pass
        self.others = self.others.after_power_loss(chooser(choices))
        self._follow(synced, power_lost=True)

    @invariant()
    def a_start_on_the_copy_finds_what_was_sent(self) -> None:
        if not hasattr(self, "mirror") or self.mirror.doubt or not self.mirror.segments:
            return
        seen = recovered(SimulatedFiles(copying.deepcopy(self.others.root)))
        end = seen[-1].lsn + 1 if seen else self.mirror.next_lsn
        assert end == self.mirror.next_lsn
        if self.is_aligned:
            assert seen == self.model[self.mirror.first_lsn : end]
        reached = min(self.committed, end) if self.is_short else self.committed
        both = self.model[self.mirror.first_lsn : reached]
        assert [one for one in seen if one.lsn < self.committed] == both

    @invariant()
    def the_leader_has_all(self) -> None:
        if hasattr(self, "mirror"):
            found, gaps = records.everything(self.partition)
            assert gaps == []
            assert found == self.model[self.partition.first_lsn : self.committed]


CopiesAgree.TestCase.settings = settings(max_examples=100, stateful_step_count=30, deadline=None)
TestCopiesAgree = CopiesAgree.TestCase

"""However a log is filled, killed and cut off from power, it reads like a list, and what was committed stays."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from commitlog.simulated import SimulatedFiles
from tests.commitlog.records import NOW, append, everything, opened, write

TOPICS = st.sampled_from([b"a", b"b/c", b"long/topic/name"])
RECORDS = st.lists(st.tuples(TOPICS, st.binary(max_size=60)), min_size=1, max_size=8)


class LogAgreesWithAList(RuleBasedStateMachine):
    @initialize(durability=st.sampled_from(["disk", "process"]))
    def start(self, durability: str) -> None:
        self.durability = durability
        self.files = SimulatedFiles()
        self.model: list[tuple[bytes, bytes]] = []
        self.now = NOW
        self._open()

    def _open(self) -> None:
        # Segments of a few chunks: the log rolls often.
        self.store = opened(self.files, durability=self.durability, segment_bytes_max=20_000)
        self.partition = self.store.partitions[0]

    def _reopen(self, committed: int) -> None:
        self._open()
        assert self.partition.next_lsn >= committed, "what was committed is there"
        assert self.store.recovered[0].gaps == []
        del self.model[self.partition.next_lsn :]

    @rule(records=RECORDS, later=st.integers(0, 10_000))
    def append(self, records: list[tuple[bytes, bytes]], later: int) -> None:
        self.now += later
        append(self.partition, records, self.now)
        self.model += records

    @rule()
    def write(self) -> None:
        assert write(self.partition)

    @rule()
    def index(self) -> None:
        while (job := self.partition.take_seal_job()) is not None:
            job.run()

    @rule()
    def mark(self) -> None:
        group = self.partition.take_mark(self.now)
        if group is not None:
            group.run()
            self.partition.complete(group)

    @rule()
    def kill(self) -> None:
        committed = self.partition.committed_lsn
        self.files.killed()
        self._reopen(committed)

    @rule(bits=st.integers(0, 2**64 - 1))
    def lose_power(self, bits: int) -> None:
        if self.durability == "process":
            return  # promises nothing for that
        committed = self.partition.committed_lsn
        state = bits | 1 << 64

        def choose() -> bool:
            nonlocal state
            state = state >> 1 if state > 3 else bits | 1 << 64
            return bool(state & 1)

        self.files.power_lost(choose)
        self._reopen(committed)

    @rule()
    def stop(self) -> None:
        write(self.partition)
        committed = self.partition.committed_lsn
        self.store.close()
        self._reopen(committed)

    @invariant()
    def reads_like_the_list(self) -> None:
        if not hasattr(self, "partition"):
            return
        found, gaps = everything(self.partition)
        assert gaps == []
        offsets: dict[bytes, int] = {}
        expected = []
        for lsn, (topic, payload) in enumerate(self.model[: self.partition.committed_lsn]):
            expected.append((lsn, topic, offsets.setdefault(topic, 0), payload))
            offsets[topic] += 1
        assert found == expected


LogAgreesWithAList.TestCase.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
TestLogAgreesWithAList = LogAgreesWithAList.TestCase

"""One bit flips, anywhere: it is detected, and what is lost is the chunk it hit and nothing else; in what can be made
again (index, manifest, snapshot, header of a segment) nothing is lost.

The short form flips some bits of every part, the long form each of a 64 KiB segment, of its index, of the manifest and
of the snapshot."""

import time
from random import Random

import pytest

from commitlog.read.verify import verify
from commitlog.testing.simulated_files import SimulatedFiles
from tests.commitlog.records import (
    DIRECTORY,
    Seen,
    append,
    everything,
    index,
    mark,
    opened,
    some_records,
    view,
    viewed,
    write,
)
from tests.commitlog.test_damage import chunks_of, lost_of

SEGMENT_BYTES = 64 << 10
RECORDS = 60
SEED = 7


class Log:
    """A log with one segment of 64 KiB and one that follows; closed: sealed, indexed and with a snapshot."""

    def __init__(self, *, closed: bool) -> None:
        files = SimulatedFiles()
        store = opened(files, segment_bytes_max=SEGMENT_BYTES - 4096)  # and a page for its SEAL
        partition = store.partitions[0]
        while len(partition.segments.files) < 2:
            append(partition, some_records(RECORDS, partition.next_lsn), client_id="dev", tags={1: 7})
            write(partition)
            if closed:
                index(partition)
        mark(partition)
        if closed:
            store.close()
        else:
            # The writer dies with two segments, of which only the chunks say where they end.
            files.remove(f"{DIRECTORY}/MANIFEST")
        self.files = files.after_kill()
        (self.segment, *_) = [path for path in self.paths() if path.endswith(".seg")]
        self.size = files.size(self.segment)
        assert SEGMENT_BYTES * 0.8 < self.size <= SEGMENT_BYTES
        self.whole = self.look()[0]
        assert self.look()[1] == []
        starts = [start for start, _ in chunks_of(self.files, self.segment)]
        self.starts = [*starts, self.size]
        self.ends = [end for _, end in chunks_of(self.files, self.segment)]

    def paths(self) -> list[str]:
        return [f"{DIRECTORY}/{name}" for name in self.files.names(DIRECTORY)]

    def look(self) -> tuple[list[Seen], list[tuple[int, int]]]:
        found, gaps = viewed(view(self.files.beside()))
        return found, lost_of(gaps)

    def flipped(self, path: str, bit: int) -> None:
        self.files.damage(path, bit // 8, 1 << bit % 8)

    def hit(self, position: int) -> int | None:
        """The number of the chunk whose header or body has this byte; None for segment header, padding and SEAL."""
        for number, end in enumerate(self.ends):
            if self.starts[number] <= position < end:
                return number
        return None

    def check_segment(self, bit: int, *, start: bool) -> bool:
        """Flip one bit of the segment, look at what is read, flip it back. start: start a broker on it as well.

        returns: whether a record was lost"""
        self.flipped(self.segment, bit)
        chunk = self.hit(bit // 8)
        lost = [(chunk * RECORDS, chunk * RECORDS + RECORDS)] if chunk is not None else []
        kept = [seen for seen in self.whole if not (lost and lost[0][0] <= seen.lsn < lost[0][1])]
        assert self.look() == (kept, lost), bit
        if start:
            partition = opened(self.files.after_power_loss(lambda n: 0)).partitions[0]
            found, gaps = everything(partition)
            assert (found, lost_of(gaps)) == (kept, lost), bit
        self.flipped(self.segment, bit)
        return bool(lost)

    def check_said(self, path: str, bit: int) -> None:
        """Flip one bit: `verify` says where, whatever it hit."""
        self.flipped(path, bit)
        found = list(verify(self.files.beside(), "data"))
        assert found and all(f.where.startswith(path) for f in found), (path, bit, found)
        self.flipped(path, bit)

    def check_remade(self, path: str, bit: int) -> None:
        """Flip one bit of what can be made again: nothing is lost, and the next start writes it anew."""
        self.flipped(path, bit)
        assert self.look() == (self.whole, []), (path, bit)
        store = opened(self.files.after_power_loss(lambda n: 0))
        found, gaps = everything(store.partitions[0])
        assert (found, gaps, store.recovered[0].gaps) == (self.whole, [], []), (path, bit)
        assert list(store.partitions[0].next_offsets) == self.offsets(), (path, bit)
        self.flipped(path, bit)

    def offsets(self) -> list[int]:
        return [max(seen.offset for seen in self.whole if seen.topic == b"t/%d" % n) + 1 for n in range(3)]


@pytest.fixture(scope="module")
def closed() -> Log:
    return Log(closed=True)


@pytest.fixture(scope="module")
def killed() -> Log:
    return Log(closed=False)


@pytest.mark.parametrize("ending", ["closed", "killed"])
def test_a_bit_of_a_segment_costs_the_chunk_it_hit(ending: str, request: pytest.FixtureRequest) -> None:
    log: Log = request.getfixturevalue(ending)
    chance = Random(SEED)
    bits = [chance.randrange(8 * log.size) for _ in range(250)]
    lost = [log.check_segment(bit, start=number % 4 == 0) for number, bit in enumerate(bits)]
    assert 0.5 < sum(lost) / len(lost) < 1, "and in segment header, padding and SEAL it costs nothing"


def test_a_bit_of_a_segment_is_said_wherever_it_is(closed: Log) -> None:
    chance = Random(SEED)
    for at in [*range(0, 8 * 160, 37), *(chance.randrange(8 * closed.size) for _ in range(60))]:
        closed.check_said(closed.segment, at)


@pytest.mark.parametrize("ending", ["MANIFEST", "topics.snap", ".idx"])
def test_a_bit_of_what_can_be_made_again_costs_nothing(closed: Log, ending: str) -> None:
    chance = Random(SEED)
    for path in closed.paths():
        if path.endswith(ending):
            for _ in range(80):
                bit = chance.randrange(8 * closed.files.size(path))
                closed.check_said(path, bit)
                closed.check_remade(path, bit)


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_each_bit(closed: Log, killed: Log, capsys: pytest.CaptureFixture[str]) -> None:
    begun = time.monotonic()
    lost = {}
    for name, log in (("closed", closed), ("killed", killed)):
        lost[name] = sum(log.check_segment(bit, start=bit % 97 == 0) for bit in range(8 * log.size))
    for bit in range(0, 8 * closed.size, 11):
        closed.check_said(closed.segment, bit)
    others = 0
    for path in closed.paths():
        if not path.endswith(".seg"):
            for bit in range(8 * closed.files.size(path)):
                closed.check_said(path, bit)
                if bit % 5 == 0:
                    closed.check_remade(path, bit)
                others += 1
    with capsys.disabled():
        print(
            f"\neach of {8 * closed.size} bits of a closed segment and {8 * killed.size} of one left by a kill: "
            f"{lost['closed']} and {lost['killed']} cost their chunk, none another; {others} bits of indexes, manifest "
            f"and snapshot cost nothing; {time.monotonic() - begun:.0f} s, every bit, so no seed"
        )

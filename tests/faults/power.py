"""A partition that lives a life of chosen steps on a simulated disk, whose power may go before any call, and the judge
of what is found afterwards. One call of `judge` is one state of the disk after a power loss."""

import errno
from collections.abc import Callable, Iterator
from random import Random

from commitlog import Partition, Store
from commitlog.testing.simulated_device import Choose
from commitlog.testing.simulated_files import SimulatedFiles
from tests.commitlog.records import (
    DIRECTORY,
    NOW,
    append,
    everything,
    index,
    is_untouched,
    mark,
    opened,
    pack,
    preallocate,
    some_records,
    write,
)

SEGMENT_BYTES = 12_500  # of two groups: the log rolls often
KEPT_BYTES = 30_000
STEPS = (
    "group", "large", "mark", "index", "trim", "fault", "stop", "kill", "kill_inside", "spread", "wide", "room",
    "room_fault", "pack", "pack_fault",
)  # fmt: skip
CALLS_A_GROUP = 6
APART_US = 4_000_000_000
NO_AGE = 1 << 30


class Killed(Exception):
    """kill -9, between two calls."""


class Life:
    """A log that is written to, step by step. appended: how many records; acknowledged: how many of those.

    loss: called before each call that changes the disk, and between steps"""

    def __init__(self, files: SimulatedFiles, loss: Callable[["Life"], None], chance: Random) -> None:
        self.files, self.loss, self.chance = files, loss, chance
        self.appended = self.acknowledged = self.starts = self.first = 0
        self.now = NOW
        self.store: Store
        self._open()

    def _open(self) -> None:
        self.files.before_call = lambda: self.loss(self)
        self.starts += 1
        self.store = opened(
            self.files,
            segment_bytes_max=SEGMENT_BYTES,
            retention_bytes_max=KEPT_BYTES,
            segment_seconds_max=NO_AGE,
            seed=1000 * self.starts,
        )
        found, gaps = everything(self.partition)
        judged(found, gaps, self)
        # What nobody was promised may be gone, and its numbers are given again to others.
        self.appended = self.acknowledged = self.partition.next_lsn

    @property
    def partition(self) -> Partition:
        return self.store.partitions[0]

    def step(self, name: str) -> None:
        getattr(self, name)()
        self.loss(self)

    def group(self, size: int = 3) -> None:
        append(self.partition, some_records(size, self.appended), self.now)
        self.appended += size
        self._write()

    def spread(self, size: int = 3) -> None:
        """One group of three chunks: what it holds is too far apart in time for one."""
        for _ in range(3):
            self.now += APART_US
            append(self.partition, some_records(size, self.appended), self.now)
            self.appended += size
        self._write()

    def wide(self) -> None:
        """One group that does not fit into one segment."""
        self.spread(80)

    def large(self) -> None:
        self.group(80)

    def _write(self) -> None:
        write(self.partition)
        self.acknowledged = self.partition.committed_lsn

    def mark(self) -> None:
        mark(self.partition)

    def room(self) -> None:
        """Zeros ahead of the data."""
        preallocate(self.partition, always=True)

    def room_fault(self) -> None:
        self.files.choose = self.chance.randrange
        self.files.fail = {
            len(self.files.calls) + self.chance.randrange(3): self.chance.choice((errno.EIO, errno.ENOSPC))
        }
        preallocate(self.partition, always=True)
        self.files.fail = {}

    def index(self) -> None:
        try:
            index(self.partition)
        except OSError:
            pass

    def pack(self) -> None:
        self.index()
        try:
            pack(self.partition)
        except OSError:
            pass

    def pack_fault(self) -> None:
        """One of the calls of packing fails, having done a part of its work."""
        self.index()
        self.files.choose = self.chance.randrange
        self.files.fail = {
            len(self.files.calls) + self.chance.randrange(16): self.chance.choice((errno.EIO, errno.ENOSPC))
        }
        self.pack()
        self.files.fail = {}

    def trim(self) -> None:
        removal = self.partition.take_retention(0)
        if removal is not None:
            self.first = removal.first_lsn
            try:
                removal.run()
            except OSError:
                pass
            self.partition.removed(removal)

    def fault(self) -> None:
        """One of the next calls fails, having done a part of its work."""
        self.files.choose = self.chance.randrange
        self.files.fail = {
            len(self.files.calls) + self.chance.randrange(8): self.chance.choice((errno.EIO, errno.ENOSPC))
        }
        self.group()
        self.files.fail = {}

    def stop(self) -> None:
        self.store.close()
        self.kill()

    def kill(self) -> None:
        self.files = self.files.after_kill()
        self._open()

    def kill_inside(self) -> None:
        """kill -9 while a group is written: what was written and not synced is in the page cache only."""
        left = self.chance.randrange(CALLS_A_GROUP)

        def before_call() -> None:
            nonlocal left
            self.loss(self)
            if not left:
                raise Killed
            left -= 1

        self.files.before_call = before_call
        try:
            self.group()
        except Killed:
            pass
        self.kill()


def judged(found: list, gaps: list, life: Life) -> None:  # type: ignore[type-arg]
    """What was acknowledged is there, in order, each record as it was, and nothing else."""
    first = found[0].lsn if found else 0
    assert gaps == []
    assert first <= life.first, "retention takes what it says, and no more"
    records = [(seen.lsn, seen.topic, seen.payload) for seen in found]
    end = records[-1][0] + 1 if records else first
    assert end >= life.acknowledged, f"{life.acknowledged} acknowledged, {end} found"
    assert end <= life.appended
    expected = some_records(end - first, first)
    assert records == [(first + n, *record) for n, record in enumerate(expected)]
    assert all(seen.offset == seen.lsn // 3 for seen in found), "three topics take turns"


def judge(life: Life, choose: Choose) -> SimulatedFiles:
    """Lose the power now, start again, and look: one state."""
    files = life.files.after_power_loss(choose)
    before = data_files(files)
    store = opened(
        files,
        segment_bytes_max=SEGMENT_BYTES,
        retention_bytes_max=KEPT_BYTES,
        segment_seconds_max=NO_AGE,
        seed=7,
    )
    found, gaps = everything(store.partitions[0])
    judged(found, gaps, life)
    offsets = list(store.partitions[0].next_offsets)
    end = store.partitions[0].next_lsn
    assert offsets == [(end - topic + 2) // 3 for topic in range(len(offsets))], "no offset is given twice"
    recovered = store.recovered[0]
    assert recovered.gaps == [] == recovered.known_gaps, "nothing that was acknowledged is called damaged"
    assert recovered.unreadable == []
    after = data_files(files)
    for path, content in before.items():
        if path not in after:
            assert int(path.rpartition("/")[2][:20]) < life.first, "only what retention took goes"
        else:
            assert is_untouched(content, after[path]), "recovery modifies no data file"
    return files


def judge_twice(life: Life, choose: Choose) -> None:
    """Lose the power, and once more at some call of the start that follows."""
    files = life.files.after_power_loss(choose)
    second: list[SimulatedFiles] = []
    calls = 0
    wanted = choose(24)

    def again() -> None:
        nonlocal calls
        if calls == wanted:
            second.append(files.after_power_loss(choose))
        calls += 1

    files.before_call = again
    opened(
        files,
        segment_bytes_max=SEGMENT_BYTES,
        retention_bytes_max=KEPT_BYTES,
        segment_seconds_max=NO_AGE,
        seed=7,
    )
    for after in second:
        store = opened(
            after,
            segment_bytes_max=SEGMENT_BYTES,
            retention_bytes_max=KEPT_BYTES,
            segment_seconds_max=NO_AGE,
            seed=8,
        )
        judged(*everything(store.partitions[0]), life)


def data_files(files: SimulatedFiles) -> dict[str, bytes]:
    if not files.exists(DIRECTORY):
        return {}
    return {name: files.content(f"{DIRECTORY}/{name}") for name in files.names(DIRECTORY) if name.endswith(".seg")}


def histories(length: int) -> Iterator[tuple[str, ...]]:
    """Every sequence of so many steps."""
    if not length:
        yield ()
        return
    for before in histories(length - 1):
        for step in STEPS:
            yield (*before, step)

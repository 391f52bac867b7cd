"""A disk that fails at any call: nothing that was acknowledged is lost, and work goes on by itself."""

import errno

import pytest

from commitlog import NotWritable
from commitlog.read.verify import verify
from commitlog.testing.simulated_files import SimulatedFiles
from tests.commitlog.records import (
    DIRECTORY,
    append,
    everything,
    index,
    mark,
    opened,
    records_of,
    segments,
    some_records,
    write,
)

FAULTS = [errno.EIO, errno.ENOSPC]
SEGMENT_BYTES = 12_000  # two groups


def history(files: SimulatedFiles, durability: str) -> list[int]:
    """Four groups, marks, rolls, indexes and a stop; returns what was committed after each step."""
    store = opened(files, durability=durability, segment_bytes_max=SEGMENT_BYTES)
    partition = store.partitions[0]
    committed = [0]
    for group in range(5):
        append(partition, some_records(10, 10 * group), tags={0: group + 1})
        write(partition)
        committed.append(partition.committed_lsn)
        mark(partition)
        try:
            index(partition)
        except OSError:
            pass  # told; the segment is whole
    write(partition)
    committed.append(partition.committed_lsn)
    store.close()
    return committed


def calls_of_a_sound_history(durability: str) -> tuple[int, int]:
    files = SimulatedFiles()
    opened(files, durability=durability)
    begun = len(files.calls)
    files = SimulatedFiles()
    history(files, durability)
    return begun, len(files.calls)


@pytest.mark.parametrize("number", FAULTS)
@pytest.mark.parametrize("durability", ["disk", "process"])
@pytest.mark.parametrize("part", [0, 1, 2])
def test_one_call_fails(number: int, durability: str, part: int) -> None:
    """Each call that changes the disk fails once, having done a part of its work: the group goes to a new segment."""
    for call in range(*calls_of_a_sound_history(durability)):
        files = SimulatedFiles(choose=lambda n: part % n)
        files.fail = {call: number}
        committed = history(files, durability)
        assert committed[-1] == 50, f"call {call}, {files.calls[call]}: work goes on by itself"
        files = files.after_power_loss(lambda n: 0) if durability == "disk" else files.after_kill()
        store = opened(files, durability=durability, seed=500)
        found, gaps = everything(store.partitions[0])
        assert records_of(found) == some_records(50), f"call {call}, {files.calls[:1]}"
        assert [seen.tag for seen in found[::10]] == [1, 2, 3, 4, 5]
        assert gaps == [] == store.recovered[0].gaps
        assert [f for f in verify(files, "data") if f.severity == "error"] == []


@pytest.mark.parametrize("number", FAULTS)
@pytest.mark.parametrize("part", [0, 1])
def test_every_call_fails_from_one_on(number: int, part: int) -> None:
    """Nothing more is acknowledged; then the power goes."""
    begun, end = calls_of_a_sound_history("disk")
    for call in range(begun, end):
        files = SimulatedFiles(choose=lambda n: part % n)
        files.fail = dict.fromkeys(range(call, call + 1000), number)
        committed = history(files, "disk")
        kept = max(committed)
        for choice in (0, 1):
            after = files.after_power_loss(lambda n, choice=choice: choice % n)  # type: ignore[misc]
            store = opened(after, seed=500)
            found, gaps = everything(store.partitions[0])
            assert len(found) >= kept, f"call {call}"
            assert records_of(found) == some_records(len(found))
            assert gaps == []


def test_a_full_disk_acknowledges_nothing_and_leaves_no_files_behind() -> None:
    files = SimulatedFiles()
    partition = opened(files).partitions[0]
    append(partition, some_records(10))
    write(partition)
    names = segments(files)
    files.broken = errno.ENOSPC
    append(partition, some_records(10, 10))
    for _ in range(20):
        assert not write(partition)
        assert partition.committed_lsn == 10
        assert partition.offline is not None and "nothing is acknowledged" in str(partition.offline)
        assert partition.pending_bytes > 0
    assert segments(files) == names
    files.broken = None
    assert write(partition)
    assert partition.offline is None and partition.committed_lsn == 20 and partition.pending_bytes == 0
    assert records_of(everything(partition)[0]) == some_records(20)


def test_a_failed_sync_is_not_tried_again_on_the_same_file() -> None:
    """The next sync would succeed without having written anything."""
    files = SimulatedFiles()
    partition = opened(files).partitions[0]
    append(partition, some_records(10))
    write(partition)
    append(partition, some_records(10, 10))
    files.fail = {len(files.calls) + 1: errno.EIO}
    assert write(partition)
    first, second = segments(files)
    assert ("sync", first) not in files.calls[files.calls.index(("create", second)) :]
    found, _ = everything(opened(files.after_power_loss(lambda n: 0)).partitions[0])
    assert records_of(found) == some_records(20)


def test_what_is_behind_the_fence_does_not_come_back() -> None:
    """The failed group is whole in the old file and in the new one: it is read once, after every restart."""
    files = SimulatedFiles(choose=lambda n: n - 1)
    partition = opened(files).partitions[0]
    append(partition, some_records(10))
    write(partition)
    append(partition, some_records(10, 10))
    files.fail = {len(files.calls) + 1: errno.EIO}
    write(partition)
    append(partition, some_records(10, 20))
    write(partition)
    index(partition)
    assert records_of(everything(partition)[0]) == some_records(30)
    for manifest in ("kept", "lost"):
        files = files.after_kill()
        if manifest == "lost":
            files.remove(f"{DIRECTORY}/MANIFEST")
        store = opened(files, seed=500)
        assert records_of(everything(store.partitions[0])[0]) == some_records(30)
        assert list(store.partitions[0].next_offsets) == [10, 10, 10]
        assert store.recovered[0].gaps == []
        index(store.partitions[0])


def test_a_failed_mark_gives_the_segment_up_and_nothing_else() -> None:
    files = SimulatedFiles()
    partition = opened(files).partitions[0]
    append(partition, some_records(10))
    write(partition)
    files.fail = {len(files.calls): errno.EIO}
    mark(partition)
    append(partition, some_records(10, 10))
    assert write(partition)
    assert len(segments(files)) == 2
    files = files.after_power_loss(lambda n: 1)
    assert records_of(everything(opened(files).partitions[0])[0]) == some_records(20)


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC, errno.EROFS, errno.EACCES])
def test_a_start_that_meets_a_fault_says_so_and_lets_go(number: int) -> None:
    """Each call of a start fails: it is refused with what to do, and the next start has everything."""
    done = False
    call = 0
    while not done:
        files = SimulatedFiles()
        partition = opened(files).partitions[0]
        append(partition, some_records(10))
        write(partition)
        files = files.after_kill()
        files.fail = {call: number}
        try:
            opened(files)
            done = len(files.calls) <= call
            refused = ""
        except NotWritable as refusal:
            refused = str(refusal)
        assert not refused or ("data directory data: " in refused and "--data" in refused)
        call += 1
        files.fail = {}
        if not done:
            again = opened(files.after_kill(), seed=500)
            assert records_of(everything(again.partitions[0])[0]) == some_records(10)


def test_a_stop_on_a_full_disk_says_what_it_could_not_do_and_loses_nothing() -> None:
    files = SimulatedFiles()
    store = opened(files)
    append(store.partitions[0], some_records(10))
    write(store.partitions[0])
    files.broken = errno.ENOSPC
    (failure,) = store.close()
    assert "the next start scans the log" in str(failure)
    files = files.after_power_loss(lambda n: 0)
    assert records_of(everything(opened(files).partitions[0])[0]) == some_records(10)

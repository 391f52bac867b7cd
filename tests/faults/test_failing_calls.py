"""Each call to the disk fails: those that change something, those that only look, and each write for want of room.
Nothing is acknowledged that is not safe, a file whose write or sync failed is left alone, and work goes on."""

import errno

import pytest

from commitlog import NotWritable, Partition
from commitlog.index.dictionary import SEALS_BETWEEN
from commitlog.read.verify import verify
from commitlog.testing.simulated_device import BLOCK, taken
from commitlog.testing.simulated_files import SimulatedFiles
from tests.commitlog.records import (
    DIRECTORY,
    NOW,
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
from tests.commitlog.test_faults import SEGMENT_BYTES, calls_of_a_sound_history, history


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC])
@pytest.mark.parametrize("durability", ["disk", "process"])
def test_a_file_whose_write_or_sync_failed_is_not_synced_again(number: int, durability: str) -> None:
    """A manifest of which only a write failed is the exception: it is written again at the same place."""
    fenced = 0
    for call in range(*calls_of_a_sound_history(durability)):
        files = SimulatedFiles(choose=lambda n: 1 % n)
        files.fail = {call: number}
        history(files, durability)
        name, path = files.calls[call]
        if name not in ("write", "sync") or (name, path) == ("write", f"{DIRECTORY}/MANIFEST"):
            continue
        fenced += 1
        for later, other in files.calls[call + 1 :]:
            if other == path and later in ("create", "rename", "remove"):
                break  # the name is another file's now, or nobody's
            assert (later, other) not in (("sync", path), ("write", path)), f"call {call}: {name} {path}"
    assert fenced > 10


@pytest.mark.parametrize("durability", ["disk", "process"])
def test_the_disk_is_full_at_each_block(durability: str) -> None:
    """Whatever fits is acknowledged and stays; nothing else is; with room again everything goes on by itself."""
    files = SimulatedFiles()
    history(files, durability)
    needed = taken(files.root) // BLOCK
    files = SimulatedFiles()
    opened(files, durability=durability)
    begun = taken(files.root) // BLOCK
    stopped = set()
    for room in range(begun, needed + 3):
        files = SimulatedFiles()
        files.room_bytes = room * BLOCK
        store = opened(files, durability=durability, segment_bytes_max=SEGMENT_BYTES)
        partition = store.partitions[0]
        for group in range(5):
            append(partition, some_records(10, 10 * group))
            write(partition)
            mark(partition)
            try:
                index(partition)
            except OSError:
                pass  # told; the segment is whole
        stopped.add(partition.committed_lsn)
        found, gaps = everything(partition)
        assert records_of(found) == some_records(partition.committed_lsn) and gaps == []
        after = files.after_power_loss(lambda n: 0) if durability == "disk" else files.after_kill()
        after.room_bytes = None
        found, gaps = everything(opened(after, seed=500).partitions[0])
        assert records_of(found[: partition.committed_lsn]) == some_records(partition.committed_lsn)
        assert gaps == []
        files.room_bytes = None
        assert write(partition) or partition.pending_bytes == 0
        assert partition.committed_lsn == 50
        index(partition)
        assert records_of(everything(partition)[0]) == some_records(50)
        assert store.close() == []
        assert [f for f in verify(files, "data") if f.severity == "error"] == []
    assert len(stopped) > (3 if durability == "disk" else 1), "it was full at different places"


def a_log() -> SimulatedFiles:
    files = SimulatedFiles()
    partition = opened(files, segment_bytes_max=SEGMENT_BYTES).partitions[0]
    for group in range(5):
        append(partition, some_records(10, 10 * group))
        write(partition)
    index(partition)
    return files.after_kill()


def refusal(files: SimulatedFiles) -> str:
    """What a start is refused with; nothing when it is not."""
    try:
        opened(files, segment_bytes_max=SEGMENT_BYTES)
    except NotWritable as refused:
        return str(refused)
    return ""


@pytest.mark.parametrize("number", [errno.EIO, errno.EACCES, errno.ENOENT])
def test_a_start_that_cannot_read_is_refused_and_deletes_nothing(number: int) -> None:
    """Each open, read, size and listing of a start fails once."""
    sound = a_log()
    opened(sound, segment_bytes_max=SEGMENT_BYTES)
    refused = 0
    for look in range(len(sound.looks)):
        files = a_log()
        kept = {path: files.content(path) for path in segments(files)}
        files.looks.clear()
        files.fail_looks = {look: number}
        said = refusal(files)
        refused += "--data" in said
        assert said or number == errno.ENOENT, f"look {look}, {files.looks[look]}: an error is no answer"
        files = files.after_kill()
        assert {path: files.content(path) for path in kept} == kept
        found, gaps = everything(opened(files, seed=500).partitions[0])
        assert records_of(found) == some_records(50) and gaps == []
    assert refused > 20


def read_and_search(partition: Partition) -> None:
    partition.cold_read(0, 1 << 20).run()
    partition.find_time(NOW).run()
    partition.find_offset(b"t/1", 5).run()


def test_a_read_that_fails_is_an_error_and_no_gap() -> None:
    """What cannot be read now may be readable later: only what is damaged is called lost."""
    files = a_log()
    partition = opened(files, segment_bytes_max=SEGMENT_BYTES).partitions[0]
    begun = len(files.looks)
    read_and_search(partition)
    for look in range(begun, len(files.looks)):
        again = a_log()
        partition = opened(again, segment_bytes_max=SEGMENT_BYTES).partitions[0]
        again.fail_looks = {look: errno.EIO}
        with pytest.raises(OSError):
            read_and_search(partition)
        found, gaps = everything(partition)
        assert records_of(found) == some_records(50) and gaps == []


def test_a_segment_that_could_not_be_indexed_is_indexed_later_and_keeps_its_offsets() -> None:
    """Its topics are nowhere else: were they forgotten, their offsets would be given again after a restart."""
    files = SimulatedFiles(choose=lambda n: n - 1)
    store = opened(files, segment_bytes_max=SEGMENT_BYTES)
    partition = store.partitions[0]
    append(partition, [(b"only/here", b"1"), (b"only/here", b"2")])
    write(partition)
    append(partition, some_records(3))
    files.fail = {len(files.calls) + 1: errno.EIO}  # the sync: the segment is given up, without a draft
    assert write(partition)
    first = partition.take_seal_job()
    assert first is not None
    files.fail_looks = {len(files.looks): errno.EIO}
    with pytest.raises(OSError):
        first.run()
    for group in range(20):
        append(partition, some_records(60, 60 * group))
        write(partition)
        index(partition)
    assert store.close() == []
    again = opened(files.after_kill(), seed=500).partitions[0]
    append(again, [(b"only/here", b"3")])
    write(again)
    assert everything(again)[0][-1].offset == 2


def test_topics_of_a_segment_whose_indexing_is_not_done_are_not_passed_over() -> None:
    """The snapshot covers no more than what is indexed without a hole, whatever comes behind."""
    files = SimulatedFiles()
    partition = opened(files, segment_bytes_max=SEGMENT_BYTES).partitions[0]
    append(partition, [(b"only/here", b"1" * 5000), (b"only/here", b"2" * 5000)])
    write(partition)
    append(partition, some_records(60))
    write(partition)
    assert partition.take_seal_job() is not None, "its thread does not come to it"
    for group in range(1, 4 * SEALS_BETWEEN):
        append(partition, some_records(60, 60 * group))
        write(partition)
        index(partition)
    again = opened(files.after_kill(), seed=500).partitions[0]
    append(again, [(b"only/here", b"3")])
    write(again)
    assert everything(again)[0][-1].offset == 2

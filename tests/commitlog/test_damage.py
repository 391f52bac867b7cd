"""Torn tails, flipped bits, lost files and failing calls. docs/log-format.md, "Recovery"."""

import errno

import pytest

from commitlog import DirectoryInUse, FormatTooNew, Gap
from commitlog.simulated import SimulatedFiles
from tests.commitlog.records import append, everything, opened, write

P = "data/main/g1/p0"


def filled(groups: int = 3) -> tuple[SimulatedFiles, list[tuple[bytes, bytes]]]:
    """A log of so many groups of ten records, whose process was killed."""
    files = SimulatedFiles()
    partition = opened(files).partitions[0]
    records = [(b"t/%d" % (n % 2), b"payload %d" % n) for n in range(10 * groups)]
    for group in range(groups):
        append(partition, records[10 * group : 10 * group + 10])
        write(partition)
    files.killed()
    return files, records


def segment(files: SimulatedFiles) -> bytearray:
    """The bytes of the only segment that holds records."""
    (name,) = [n for n in files.names(P) if n.endswith(".seg") and files.size(f"{P}/{n}") > 4096]
    return files._names[f"{P}/{name}"].cache


def test_a_tail_torn_at_any_byte_loses_only_that_group() -> None:
    whole = len(segment(filled()[0]))
    last = whole - 4096  # each group of class disk ends a page
    for at in [*range(last, whole, 97), last + 1, whole - 1]:
        files, records = filled()
        content = segment(files)
        content[at:] = bytes(len(content) - at)
        before = bytes(content)
        store = opened(files)
        found, gaps = everything(store.partitions[0])
        kept = 30 if before == bytes(segment(filled()[0])) else 20
        assert [(topic, payload) for _, topic, _, payload in found] == records[:kept], at
        assert gaps == [] and store.recovered[0].gaps == []


def test_a_flipped_bit_loses_its_chunk_and_says_so() -> None:
    """In a chunk that a later one proves to have been durable, every bit that matters."""
    start = 4096
    for at in range(start, start + 128 + 320 + 250, 7):
        files, records = filled()
        segment(files)[at] ^= 0x10
        store = opened(files)
        found, gaps = everything(store.partitions[0])
        got = [(topic, payload) for _, topic, _, payload in found]
        if got == records:
            assert gaps == []  # a bit of the padding
            continue
        assert got == records[10:], at
        assert [(g.base_lsn, g.next_lsn) for g in gaps] == [(0, 10)], at
        assert [(g.base_lsn, g.next_lsn) for g in store.recovered[0].gaps] == [(0, 10)]


def test_a_damaged_segment_stays_readable_behind_the_damage_after_every_restart() -> None:
    files, records = filled()
    segment(files)[4096 + 200] ^= 1
    for _ in range(3):
        store = opened(files)
        found, gaps = everything(store.partitions[0])
        assert [(topic, payload) for _, topic, _, payload in found] == records[10:]
        assert [(g.base_lsn, g.next_lsn) for g in gaps] == [(0, 10)]
        files.killed()


@pytest.mark.parametrize("ending", ["MANIFEST", "topics.snap", ".idx"])
@pytest.mark.parametrize("how", ["lost", "damaged"])
def test_what_can_be_made_again_is_made_again(ending: str, how: str) -> None:
    files, records = filled()
    store = opened(files)
    store.close()
    files.killed()
    for name in files.names(P):
        if name.endswith(ending):
            if how == "lost":
                files.remove(f"{P}/{name}")
            else:
                content = files._names[f"{P}/{name}"].cache
                content[len(content) // 2] ^= 4
    found, gaps = everything(opened(files).partitions[0])
    assert [(topic, payload) for _, topic, _, payload in found] == records
    assert gaps == []


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC])
def test_no_call_may_fail_and_lose_what_was_committed(number: int) -> None:
    """Each call that changes the disk fails once: what is committed then is there after a power loss."""
    calls = 0
    while True:
        calls += 1
        files = SimulatedFiles()
        partition = opened(files, segment_bytes_max=12_000).partitions[0]
        begin = files.calls
        files.fail_at = {begin + calls: number}
        records = [(b"t", b"%d" % n) for n in range(40)]
        for group in range(4):
            append(partition, records[10 * group : 10 * group + 10])
            write(partition)
        write(partition)  # once more, for what could not be written the first time
        done = files.calls < begin + calls
        assert partition.committed_lsn == 40, f"call {calls}: work resumes by itself"
        files.fail_at = {}
        files.power_lost(lambda: False)
        found, gaps = everything(opened(files, segment_bytes_max=12_000).partitions[0])
        assert [payload for _, _, _, payload in found] == [payload for _, payload in records], f"call {calls}"
        assert gaps == [], f"call {calls}"
        if done:
            return


def test_a_directory_has_one_broker() -> None:
    files = SimulatedFiles()
    opened(files)
    with pytest.raises(DirectoryInUse, match="another broker holds it"):
        opened(files)


def test_a_newer_format_is_refused() -> None:
    files = SimulatedFiles()
    opened(files).close()
    files.killed()
    files._names["data/FORMAT"].cache[:] = b"rumq 2\n"
    with pytest.raises(FormatTooNew, match="use the rumq that wrote it"):
        opened(files)


def test_a_gap_is_plain_data() -> None:
    assert Gap(1, 5, "why").next_lsn == 5

"""A tail that was torn (nobody was promised it) and one that is damaged (somebody was) look alike but for the marks:
every byte boundary, and every subset of the sectors, of three chunks is told apart rightly, and no file is modified.
docs/reference/log-format.md, "Recovery"."""

import pytest

from commitlog import Gap
from commitlog.read.verify import verify
from commitlog.testing.simulated_files import SimulatedFiles
from tests.commitlog.records import (
    DIRECTORY,
    NOW,
    append,
    everything,
    is_untouched,
    mark,
    opened,
    records_of,
    segments,
    some_records,
    view,
    viewed,
    write,
)
from tests.commitlog.test_damage import chunks_of, lost_of, with_a_group_of_three_chunks

SECTOR = 512
Whole = list[bool]


def marked_tail(durability: str) -> tuple[SimulatedFiles, str, list[tuple[int, int]], int]:
    """As `with_a_group_of_three_chunks`, but acknowledged; an idle partition has written its mark behind it, in a
    page of its own where groups are synced. Returns the first byte of the mark as well."""
    files = SimulatedFiles()
    partition = opened(files, durability=durability, segment_seconds_max=1 << 30).partitions[0]
    append(partition, some_records(4))
    write(partition)
    for number in (1, 2, 3):  # too far apart in time to be one chunk
        append(partition, some_records(4, 4 * number), ts=NOW + number * 4_000_000_000)
    write(partition)
    (path,) = segments(files)
    marked_at = files.size(path)
    mark(partition)
    files = files.after_kill()
    chunks = chunks_of(files, path)
    assert len(chunks) == 4 and files.size(path) > marked_at
    return files, path, chunks, marked_at


def expected(whole: Whole, promised: bool) -> tuple[list[int], list[tuple[int, int]]]:
    """Which of four chunks of four records count, and the ranges that are lost."""
    if not promised:
        return list(range([*whole, False].index(False))), []
    kept = [number for number, is_whole in enumerate(whole) if is_whole]
    lost: list[tuple[int, int]] = []
    for number, is_whole in enumerate(whole):
        if not is_whole and lost and lost[-1][1] == 4 * number:
            lost[-1] = lost[-1][0], 4 * number + 4
        elif not is_whole:
            lost.append((4 * number, 4 * number + 4))
    return kept, lost


def told(files: SimulatedFiles, path: str, content: bytes, whole: Whole, promised: bool, at: object) -> SimulatedFiles:
    """Put this content there, start, and hold what is found against what the whole chunks say."""
    manifest = files.content(f"{DIRECTORY}/MANIFEST")
    files.put(path, content)
    kept, lost = expected(whole, promised)
    records = [record for number in kept for record in some_records(4, 4 * number)]
    seen = view(files)
    assert records_of(viewed(seen)[0]) == records, at
    store = opened(files)
    found, gaps = everything(store.partitions[0])
    assert records_of(found) == records, at
    assert joined(gaps) == lost == joined(store.recovered[0].gaps), at
    assert store.partitions[0].next_lsn == max([4 * kept[-1] + 4 if kept else 0, *(end for _, end in lost)]), at
    assert is_untouched(content, files.content(path)), "recovery modifies no data file"
    assert any(f.severity == "error" for f in verify(files.after_kill(), "data")) == bool(lost), at
    files = files.after_kill()
    for name in files.names(DIRECTORY):
        if name.startswith("topics") or name.endswith(".idx"):
            files.remove(f"{DIRECTORY}/{name}")
    files.put(f"{DIRECTORY}/MANIFEST", manifest)
    return files


def joined(gaps: list[Gap]) -> list[tuple[int, int]]:
    """The ranges of gaps, neighbours as one."""
    ranges: list[tuple[int, int]] = []
    for base, end in lost_of(gaps):
        if ranges and ranges[-1][1] == base:
            ranges[-1] = ranges[-1][0], end
        else:
            ranges.append((base, end))
    return ranges


def subsets(content: bytes, first: int, end: int) -> list[tuple[int, bytes]]:
    """Every combination of the sectors in which first..end lies, zeros where one did not survive."""
    sectors = range(first // SECTOR, (end + SECTOR - 1) // SECTOR)
    found = []
    for bits in range(1 << len(sectors)):
        torn = bytearray(content)
        for number, sector in enumerate(sectors):
            if not bits >> number & 1:
                at, stop = max(first, sector * SECTOR), min(end, sector * SECTOR + SECTOR)
                torn[at:stop] = bytes(stop - at)
        found.append((bits, bytes(torn)))
    return found


@pytest.mark.parametrize("durability", ["process", "disk"])
def test_every_subset_of_the_sectors_of_an_acknowledged_tail_is_damage(durability: str) -> None:
    files, path, chunks, marked_at = marked_tail(durability)
    content = files.content(path)
    states = subsets(content, chunks[1][0], marked_at)
    for bits, torn in states:
        whole = [torn[start:end] == content[start:end] for start, end in chunks]
        files = told(files, path, torn, whole, True, bits)
    assert len(states) >= 8


@pytest.mark.parametrize("durability", ["process", "disk"])
def test_every_subset_of_the_sectors_of_a_tail_without_its_mark_is_torn(durability: str) -> None:
    files, path, chunks = with_a_group_of_three_chunks(durability)
    content = files.content(path)
    for bits, torn in subsets(content, chunks[1][0], len(content)):
        whole = [torn[start:end] == content[start:end] for start, end in chunks]
        files = told(files, path, torn, whole, False, bits)


@pytest.mark.parametrize("durability", ["process", "disk"])
def test_from_every_byte_on_zeros_up_to_the_mark_are_damage(durability: str) -> None:
    """The mark has reached the disk, so what is before it was there once."""
    files, path, chunks, marked_at = marked_tail(durability)
    content = files.content(path)
    for at in range(chunks[1][0], chunks[3][1]):
        torn = content[:at] + bytes(marked_at - at) + content[marked_at:]
        whole = [torn[start:end] == content[start:end] for start, end in chunks]
        files = told(files, path, torn, whole, True, at)


@pytest.mark.parametrize("durability", ["process", "disk"])
def test_a_file_that_ends_at_any_byte_before_its_mark_is_torn(durability: str) -> None:
    """Mark and last group lost together look like a tail that was never acknowledged: what docs/reference/log-format.md
    says is not covered. The marks in the chunks before still count."""
    files, path, chunks, marked_at = marked_tail(durability)
    content = files.content(path)
    for at in range(chunks[1][0], marked_at, 3):
        # A chunk is whole with its padding only: a write that was not finished was not acknowledged.
        whole = [following <= at for following in [start for start, _ in chunks[1:]] + [marked_at]]
        files = told(files, path, content[:at], whole, False, at)


def test_an_idle_partition_marks_its_last_group_and_only_once() -> None:
    files = SimulatedFiles()
    partition = opened(files).partitions[0]
    append(partition, some_records(4))
    write(partition)
    assert partition.take_mark(NOW) is not None
    partition = opened(files.after_kill(), seed=9).partitions[0]
    append(partition, some_records(4, 4))
    write(partition)
    mark(partition)
    assert partition.take_mark(NOW) is None, "nothing has changed since"

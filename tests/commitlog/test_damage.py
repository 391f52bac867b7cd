"""Torn tails, flipped bits, files that are lost, misplaced or cut. docs/reference/log-format.md, "Recovery"."""

from zlib import crc32

import pytest

from commitlog import FormatTooNew, Gap
from commitlog.chunk import HEADER, HEADER_BYTES, maybe_header
from commitlog.format.segment import LAYOUT, SEGMENT_HEADER_BYTES, opening, walk
from commitlog.read.verify import verify
from commitlog.testing.simulated_files import SimulatedFiles
from tests.commitlog.records import (
    DIRECTORY,
    NOW,
    append,
    everything,
    filled,
    index,
    is_untouched,
    opened,
    records_of,
    segments,
    some_records,
    view,
    viewed,
    write,
)


def chunks_of(files: SimulatedFiles, path: str) -> list[tuple[int, int]]:
    """(first byte, first byte behind what it says) of each chunk with records."""
    handle = files.open(path)
    salt = opening(files, handle, path).header.salt
    return [
        (at, at + HEADER_BYTES + header.body_len)
        for at, header in walk(files, handle, salt, SEGMENT_HEADER_BYTES, files.size(path))
        if header.count
    ]


def lost_of(gaps: list[Gap]) -> list[tuple[int, int]]:
    return [(gap.base_lsn, gap.next_lsn) for gap in gaps]


def with_a_group_of_three_chunks(durability: str) -> tuple[SimulatedFiles, str, list[tuple[int, int]]]:
    """Four records that are committed, and a group of three chunks that was written, but never acknowledged."""
    files = SimulatedFiles()
    partition = opened(files, durability=durability, segment_seconds_max=1 << 30).partitions[0]
    append(partition, some_records(4))
    write(partition)
    for number in (1, 2, 3):  # too far apart in time to be one chunk
        append(partition, some_records(4, 4 * number), ts=NOW + number * 4_000_000_000)
    group = partition.take_group()
    assert group is not None
    group.run()
    files = files.after_kill()
    (path,) = segments(files)
    chunks = chunks_of(files, path)
    assert len(chunks) == 4
    return files, path, chunks


@pytest.mark.parametrize("durability", ["process", "disk"])
def test_a_tail_torn_at_any_byte_keeps_what_was_whole_before(durability: str) -> None:
    files, path, chunks = with_a_group_of_three_chunks(durability)
    content = files.content(path)
    manifest = files.content(f"{DIRECTORY}/MANIFEST")
    for at in range(chunks[1][0], len(content)):
        torn = content[:at] + bytes(len(content) - at)
        files.put(path, torn)
        files.put(f"{DIRECTORY}/MANIFEST", manifest)
        whole = sum(torn[start:end] == content[start:end] for start, end in chunks)
        assert view(files).end_lsn == 4 * whole
        store = opened(files)
        found, gaps = everything(store.partitions[0])
        assert records_of(found) == some_records(4 * whole), at
        assert gaps == [] == store.recovered[0].gaps
        assert is_untouched(torn, files.content(path)), "recovery changes no data file"
        files = files.after_kill()


def test_any_sectors_of_a_torn_tail_keep_what_was_acknowledged() -> None:
    """Every combination of the 512-byte sectors that three chunks lie in."""
    files, path, chunks = with_a_group_of_three_chunks("process")
    content = files.content(path)
    manifest = files.content(f"{DIRECTORY}/MANIFEST")
    # The sector that they share with what was there before has that at least.
    sectors = range(chunks[1][0] // 512, (len(content) + 511) // 512)
    for bits in range(1 << len(sectors)):
        torn = bytearray(content)
        for number, sector in enumerate(sectors):
            if not bits >> number & 1:
                at, end = max(chunks[1][0], sector * 512), min(len(content), sector * 512 + 512)
                torn[at:end] = bytes(end - at)
        files.put(path, bytes(torn))
        files.put(f"{DIRECTORY}/MANIFEST", manifest)
        whole = [torn[start:end] == content[start:end] for start, end in chunks]
        found, gaps = everything(opened(files).partitions[0])
        assert records_of(found) == some_records(4 * [*whole, False].index(False)), bits
        assert gaps == []
        files = files.after_kill()


def test_a_flipped_bit_loses_its_chunk_and_no_other() -> None:
    """Every byte of the middle one of three chunks, header, rows, frames and aux, that a mark proves to be durable."""
    files = filled()
    (path,) = segments(files)
    start, end = chunks_of(files, path)[1]
    manifest = files.content(f"{DIRECTORY}/MANIFEST")
    for at in range(start, end):
        files.damage(path, at, 1 << at % 8)
        before = view(files)
        assert lost_of(viewed(before)[1]) == [(10, 20)]
        store = opened(files)
        found, gaps = everything(store.partitions[0])
        assert records_of(found) == some_records(10) + some_records(10, 20), at
        assert lost_of(gaps) == [(10, 20)]
        assert lost_of(store.recovered[0].gaps) == [(10, 20)]
        files = files.after_kill()
        files.damage(path, at, 1 << at % 8)
        files.put(f"{DIRECTORY}/MANIFEST", manifest)


def test_a_flipped_bit_in_a_sealed_segment_is_a_gap_when_it_is_read() -> None:
    files = filled()
    store = opened(files)
    append(store.partitions[0], some_records(10, 30))
    write(store.partitions[0])
    store.close()
    files = files.after_kill()
    for path in segments(files):
        for start, end in chunks_of(files, path):
            for at in range(start, end, 7):
                files.damage(path, at)
                found, gaps = everything(opened(files).partitions[0])
                lost = [number for number in range(40) if number not in {seen.lsn for seen in found}]
                assert lost == [n for gap in gaps for n in range(gap.base_lsn, gap.next_lsn)]
                assert len(lost) == 10
                assert viewed(view(files.beside()))[1] == gaps
                assert any(f.severity == "error" for f in verify(files, "data"))
                files.damage(path, at)
                files = files.after_kill()


def test_a_damaged_segment_header_loses_nothing() -> None:
    files = filled()
    (path,) = segments(files)
    for at in range(0, LAYOUT.size, 3):
        files.damage(path, at)
        store = opened(files)
        found, gaps = everything(store.partitions[0])
        assert records_of(found) == some_records(30) and gaps == []
        assert "header is damaged" in store.recovered[0].repaired[0]
        assert [f.severity for f in verify(files, "data") if f.severity != "note"] == ["warning"]
        files.damage(path, at)
        files = files.after_kill()


def test_damage_is_reported_once_and_stays_a_gap() -> None:
    files = filled()
    (path,) = segments(files)
    files.damage(path, chunks_of(files, path)[0][0] + 200)
    for start in range(3):
        store = opened(files)
        found, gaps = everything(store.partitions[0])
        assert records_of(found) == some_records(20, 10)
        assert lost_of(gaps) == [(0, 10)]
        assert lost_of(store.recovered[0].gaps) == ([(0, 10)] if start == 0 else [])
        assert lost_of(store.recovered[0].known_gaps) == ([(0, 10)] if start else [])
        index(store.partitions[0])
        files = files.after_kill()


def test_topics_keep_their_numbers_and_offsets_behind_damage() -> None:
    """The chunk that named them first is lost; the next one names them again."""
    files = filled()
    (path,) = segments(files)
    files.damage(path, chunks_of(files, path)[0][0] + 200)
    store = opened(files)
    append(store.partitions[0], [(b"t/1", b"more")])
    write(store.partitions[0])
    found, _ = everything(store.partitions[0])
    assert found[-1].offset == 10
    assert store.partitions[0].topic_names == [b"t/0", b"t/1", b"t/2"]


def test_a_lost_last_segment_is_a_gap_and_its_lsns_are_not_given_again() -> None:
    files = filled()
    store = opened(files)
    append(store.partitions[0], some_records(10, 30))
    write(store.partitions[0])
    store.close()
    files = files.after_kill()
    files.remove(segments(files)[-1])
    assert any("is gone" in f.what for f in verify(files, "data"))
    store = opened(files)
    assert store.partitions[0].next_lsn == 40
    assert lost_of(store.recovered[0].gaps) == [(30, 40)]
    found, gaps = everything(store.partitions[0])
    assert records_of(found) == some_records(30) and lost_of(gaps) == [(30, 40)]
    assert any("known to be lost" in f.what for f in verify(files, "data"))


def test_a_lost_segment_in_the_middle_is_a_gap() -> None:
    files = filled()
    for first in (30, 40):
        store = opened(files, seed=first)
        append(store.partitions[0], some_records(10, first))
        write(store.partitions[0])
        files = files.after_kill()
    files.remove(segments(files)[1])
    store = opened(files)
    found, gaps = everything(store.partitions[0])
    assert records_of(found) == some_records(30) + some_records(10, 40)
    assert lost_of(gaps) == [(30, 40)] == lost_of(store.recovered[0].gaps)


@pytest.mark.parametrize("ending", ["MANIFEST", "topics.snap", ".idx"])
@pytest.mark.parametrize("how", ["lost", "damaged", "cut", "emptied", "of another time"])
def test_what_can_be_made_again_is_made_again(ending: str, how: str) -> None:
    files = filled()
    store = opened(files)
    append(store.partitions[0], some_records(10, 30))
    write(store.partitions[0])
    store.close()
    files = files.after_kill()
    for name in files.names(DIRECTORY):
        path = f"{DIRECTORY}/{name}"
        if not name.endswith(ending):
            continue
        content = files.content(path)
        if how == "lost":
            files.remove(path)
        elif how == "damaged":
            files.damage(path, len(content) // 2)
        elif how == "cut":
            files.put(path, content[: len(content) // 2])
        elif how == "emptied":
            files.put(path, b"")
        else:
            files.put(path, files.content(f"{DIRECTORY}/MANIFEST"))
    before = view(files)
    assert records_of(viewed(before)[0]) == some_records(40)
    store = opened(files, seed=9)
    append(store.partitions[0], some_records(1, 40))
    write(store.partitions[0])
    found, gaps = everything(store.partitions[0])
    assert records_of(found) == some_records(41)
    assert gaps == [] == store.recovered[0].gaps
    assert found[-1].offset == 13
    index(store.partitions[0])
    assert store.partitions[0].find_offset(b"t/1", 5).run() == 16
    assert [f for f in verify(files, "data") if f.severity == "error"] == []


def test_each_bit_of_an_index_is_checked() -> None:
    files = filled()
    opened(files).close()
    (path,) = [f"{DIRECTORY}/{name}" for name in files.names(DIRECTORY) if name.endswith(".idx")]
    files = files.after_kill()
    for at in range(files.size(path)):
        files.damage(path, at, 1 << at % 8)
        partition = view(files)
        assert records_of(viewed(partition)[0]) == some_records(30)
        assert partition.find_offset(b"t/2", 7) == 23
        assert [f.where for f in verify(files, "data")] == [path]
        files.damage(path, at, 1 << at % 8)


def test_a_segment_of_another_partition_counts_for_nothing() -> None:
    files = SimulatedFiles()
    store = opened(files, partitions=2)
    for partition in store.partitions:
        append(partition, [(b"t", b"of %d" % partition.number)])
        write(partition)
    store.close()
    files = files.after_kill()
    (path,) = segments(files)
    name = path.rpartition("/")[2].replace("00-", "05-", 1)
    files.put(f"data/main/g1/p1/{name}", files.content(path))
    store = opened(files, partitions=2)
    assert "belongs to main/p0" in store.recovered[1].unreadable[0]
    assert records_of(everything(store.partitions[1])[0]) == [(b"t", b"of 1")]


def test_bytes_of_another_segment_are_no_chunk() -> None:
    """A misdirected write: a whole chunk, with a good checksum, of another file."""
    files = filled()
    other = filled(files=SimulatedFiles())
    opened(other, seed=77)
    (path,) = segments(files)
    start, end = chunks_of(files, path)[1]
    content = bytearray(files.content(path))
    chunk = bytearray(content[start:end])
    fields = list(HEADER.unpack_from(chunk))
    fields[4] ^= 0xFF
    chunk[: HEADER.size] = HEADER.pack(*fields)
    assert maybe_header(bytes(chunk[:HEADER_BYTES]), fields[4]) is None, "its checksum covers the salt"
    content[start:end] = chunk
    files.put(path, bytes(content))
    assert lost_of(everything(opened(files).partitions[0])[1]) == [(10, 20)]


def test_a_segment_that_only_a_later_version_reads_is_refused() -> None:
    files = filled()
    (path,) = segments(files)
    raw = bytearray(files.content(path)[:SEGMENT_HEADER_BYTES])
    raw[10:12] = (2).to_bytes(2, "little")
    raw[-4:] = crc32(raw[:-4]).to_bytes(4, "little")
    files.put(path, bytes(raw) + files.content(path)[SEGMENT_HEADER_BYTES:])
    with pytest.raises(FormatTooNew, match="use the rumq that wrote it"):
        opened(files)


@pytest.mark.parametrize("size", [0, 100, 4096])
def test_a_segment_that_was_being_made_when_the_power_went_is_nothing(size: int) -> None:
    files = filled()
    files.put(f"{DIRECTORY}/{30:020d}-00000000.seg", bytes(size))
    store = opened(files)
    assert store.recovered[0].unreadable == []
    append(store.partitions[0], some_records(10, 30))
    write(store.partitions[0])
    assert records_of(everything(store.partitions[0])[0]) == some_records(40)

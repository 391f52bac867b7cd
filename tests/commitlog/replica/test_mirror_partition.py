"""A copy of a partition: what it takes, what it refuses, and that a log can be opened on it."""

import pytest

from commitlog import Damaged, LogError, LogFailure, Partition
from commitlog.errors import CutBelowCommitted
from commitlog.index.dictionary import maybe_snapshot
from commitlog.read.verify import verify
from commitlog.replica.block_reader import read_block, read_opening
from commitlog.replica.mirror_partition import MirrorPartition
from commitlog.testing.simulated_files import SimulatedFiles
from tests.commitlog.records import (
    DIRECTORY,
    append,
    everything,
    mark,
    opened,
    same_publishers,
    segments,
    some_records,
    write,
)
from tests.commitlog.records import index as index_leader
from tests.commitlog.replica.copying import (
    SEGMENT_BYTES,
    copy,
    copy_all,
    index,
    mirror_of,
    recovered,
    same_bytes,
    states,
)


def leader_with(groups: int, *, seed: int = 0) -> tuple[SimulatedFiles, Partition]:
    files = SimulatedFiles()
    partition = opened(files, segment_bytes_max=SEGMENT_BYTES, seed=seed, hot=1 << 20).partitions[0]
    for group in range(groups):
        append(partition, some_records(10, 10 * group), client_id=f"client {group % 3}", tags={0: group + 1})
        write(partition)
    return files, partition


@pytest.mark.parametrize("bytes_max", [1, 9000, 1 << 20])
def test_a_copy_has_the_same_bytes_and_the_same_records(bytes_max: int) -> None:
    files, partition = leader_with(9)
    mark(partition)
    copied = SimulatedFiles()
    mirror = mirror_of(copied)
    copy_all(files, partition, mirror, bytes_max=bytes_max)
    assert (mirror.next_lsn, mirror.synced_lsn) == (90, 90)
    assert mirror.tail == (states(partition)[-1].name, partition.writer.position)
    assert len(states(partition)) > 2
    same_bytes(files, states(partition), copied)
    assert recovered(copied.after_power_loss(lambda n: 0)) == everything(partition)[0]
    copied.put("data/FORMAT", b"rumq 1\n")
    assert [f for f in verify(copied.after_kill(), "data") if f.severity != "note"] == []


def test_a_log_opened_on_a_copy_goes_on_where_the_leader_was() -> None:
    """Topics, publishers, offsets and QoS 2 tags are those of the leader."""
    files, partition = leader_with(9)
    copied = SimulatedFiles()
    mirror = mirror_of(copied)
    copy_all(files, partition, mirror)
    index(mirror)
    mirror.close()
    store = opened(copied.after_power_loss(lambda n: 0), seed=77)
    successor = store.partitions[0]
    assert store.recovered[0].gaps == []
    assert successor.topic_names == partition.topic_names
    assert same_publishers(successor, partition)
    assert list(successor.next_offsets) == list(partition.next_offsets)
    assert [seen.tag for seen in everything(successor)[0][::10]] == list(range(1, 10))
    append(successor, some_records(10, 90))
    assert write(successor)
    assert [seen.lsn for seen in everything(successor)[0]] == list(range(100))


def test_finished_segments_are_indexed_as_the_leader_indexes_them() -> None:
    files, partition = leader_with(9)
    index_leader(partition)
    copied = SimulatedFiles()
    mirror = mirror_of(copied)
    copy_all(files, partition, mirror)
    assert mirror.take_seal_job() is None, "nothing is committed yet"
    index(mirror)
    indexes = [name for name in copied.names(DIRECTORY) if name.endswith(".idx")]
    assert len(indexes) == len(states(partition)) - 1
    for name in indexes:
        assert copied.content(f"{DIRECTORY}/{name}") == files.content(f"{DIRECTORY}/{name}")


def damaged(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


@pytest.mark.parametrize(
    ("what", "change"),
    [
        ("header is damaged", lambda data, size: damaged(data, 20)),
        ("rows do not match", lambda data, size: damaged(data, 130)),
        ("frames do not match", lambda data, size: damaged(data, 128 + 32 * 10 + 5)),
        ("bytes were sent", lambda data, size: data[: len(data) - 64]),
        ("does not follow the one before", lambda data, size: data[size:]),
        ("does not follow the one before", lambda data, size: data[:size] + data[:size]),
        ("no chunk was sent", lambda data, size: b""),
        ("header is damaged", lambda data, size: bytes(len(data))),
        ("header is damaged", lambda data, size: data + b"\1" * 64),
    ],
)
def test_chunks_that_are_not_as_they_were_written_are_refused_as_a_whole(what: str, change) -> None:  # type: ignore[no-untyped-def]
    files, partition = leader_with(3)
    copied = SimulatedFiles()
    mirror = mirror_of(copied)
    state = states(partition)[0]
    path = f"{DIRECTORY}/{state.name}"
    mirror.open_segment(state.name, read_opening(files, path))
    one, _ = read_block(files, path, 4096, state.stop, 1)
    data, _ = read_block(files, path, 4096, state.stop, 1 << 20)
    before, calls = copied.content(path), len(copied.calls)
    with pytest.raises(Damaged, match=what):
        mirror.write(state.name, 4096, change(data, len(one)))
    assert (copied.content(path), len(copied.calls)) == (before, calls), "nothing was written"
    mirror.write(state.name, 4096, data)
    mirror.sync()
    assert mirror.next_lsn == 30


def test_chunks_of_another_place_or_segment_are_refused() -> None:
    files, partition = leader_with(9)
    mirror = mirror_of(SimulatedFiles())
    first, second = states(partition)[:2]
    path = f"{DIRECTORY}/{first.name}"
    with pytest.raises(LogError, match="none is open"):
        mirror.write(first.name, 4096, b"x")
    with pytest.raises(LogError, match="and 0 is next"):
        mirror.open_segment(second.name, read_opening(files, f"{DIRECTORY}/{second.name}"))
    mirror.open_segment(first.name, read_opening(files, path))
    data, following = read_block(files, path, 4096, first.stop, 1)
    with pytest.raises(LogError, match="ends at byte 4096"):
        mirror.write(first.name, following, data)
    with pytest.raises(LogError, match="is open"):
        mirror.write(second.name, 4096, data)
    other, _ = read_block(files, f"{DIRECTORY}/{second.name}", 4096, second.stop, 1)
    with pytest.raises(Damaged, match="of another segment"):
        mirror.write(first.name, 4096, other)
    copy_all(files, partition, mirror)
    with pytest.raises(LogError, match="is open"):
        mirror.write(first.name, first.stop, data)


def test_a_header_of_another_partition_is_refused() -> None:
    files, partition = leader_with(1)
    state = states(partition)[0]
    header = read_opening(files, f"{DIRECTORY}/{state.name}")
    mirror = MirrorPartition(SimulatedFiles(), "data/main/g1/p1", "main", 1)
    with pytest.raises(Damaged, match="belongs to main/p0"):
        mirror.open_segment(state.name, header)
    mirror = mirror_of(SimulatedFiles())
    with pytest.raises(Damaged, match="name is not that of its header"):
        mirror.open_segment(f"{0:020d}-00000000.seg", header)
    with pytest.raises(Damaged, match="header is damaged"):
        mirror.open_segment(state.name, damaged(header, 30))
    assert mirror.segments == []


def test_nothing_committed_is_ever_cut() -> None:
    files, partition = leader_with(3)
    copied = SimulatedFiles()
    mirror = mirror_of(copied)
    copy_all(files, partition, mirror)
    mirror.note_committed(25)
    state = states(partition)[0]
    path = f"{DIRECTORY}/{state.name}"
    _, second = read_block(files, path, 4096, state.stop, 1)
    content, calls = copied.content(path), len(copied.calls)
    for drop, name, end_lsn, stop in (([], state.name, 10, second), ([state.name], "", 0, 0)):
        with pytest.raises(CutBelowCommitted, match="everything below 25 was committed"):
            mirror.cut(drop, name, end_lsn, stop, 0)
    assert (copied.content(path), len(copied.calls)) == (content, calls), "nothing was changed"
    assert mirror.next_lsn == 30 and not mirror.failed


def test_a_cut_must_be_at_a_chunk_and_leave_no_hole() -> None:
    files, partition = leader_with(9)
    mirror = mirror_of(SimulatedFiles())
    copy_all(files, partition, mirror)
    first, second, *rest = mirror.segments
    for drop, name, end_lsn, stop, why in (
        ([], mirror.tail[0], second.end_lsn + 5, 4096 + 64, "no chunk ends here"),
        ([second.name], "", 0, 0, "nothing from lsn"),
        ([], first.name, first.end_lsn, first.stop, "not the last segment"),
        ([one.name for one in rest], second.name, 1000, second.stop, "is shorter here"),
    ):
        with pytest.raises(LogError, match=why):
            mirror.cut(drop, name, end_lsn, stop, 0)
    assert mirror.segments == [first, second, *rest] and not mirror.failed


def test_a_copy_that_was_cut_goes_on_with_another_segment() -> None:
    """The tail of an old leader is replaced by records of the new one, under the same lsns."""
    files, partition = leader_with(9)
    copied = SimulatedFiles()
    mirror = mirror_of(copied)
    copy_all(files, partition, mirror)
    after = SimulatedFiles()
    heir = mirror_of(after)
    ours = states(partition)
    copy(files, ours, 0, heir, bytes_max=1, writes_max=6)
    heir.sync()
    heir.close()
    successor = opened(after, segment_bytes_max=SEGMENT_BYTES, seed=50).partitions[0]
    begun = successor.next_lsn
    assert 0 < begun < 90
    append(successor, some_records(5, 700))
    write(successor)
    copy_all(after, successor, mirror)
    same_bytes(after, states(successor), copied)
    assert recovered(copied.after_kill()) == everything(successor)[0]
    assert mirror.next_lsn == begun + 5


def test_a_segment_that_a_start_had_ended_is_continued() -> None:
    """A candidate that opened the log ended its last segment; the leader has more of it."""
    files, partition = leader_with(2)
    copied = SimulatedFiles()
    mirror = mirror_of(copied)
    copy(files, states(partition), 0, mirror, bytes_max=1, writes_max=1)
    mirror.sync()
    mirror.close()
    copied = copied.after_kill()
    opened(copied, seed=70)
    copied = copied.after_kill()
    mirror = mirror_of(copied)
    assert mirror.segments[-1].is_done and mirror.next_lsn == 10
    copy_all(files, partition, mirror)
    assert mirror.next_lsn == 20
    assert recovered(copied.after_power_loss(lambda n: 0)) == everything(partition)[0]


def test_trimmed_topics_keep_their_numbers() -> None:
    files = SimulatedFiles()
    partition = opened(files, segment_bytes_max=SEGMENT_BYTES).partitions[0]
    append(partition, [(b"old", b"x")] * 3, client_id="gone")
    for group in range(9):
        append(partition, some_records(10, 10 * group))
        write(partition)
    copied = SimulatedFiles()
    mirror = mirror_of(copied)
    copy_all(files, partition, mirror)
    first = mirror.segments[1]
    mirror.trim(first.base_lsn + 1)
    assert mirror.first_lsn == first.base_lsn == mirror.segments[0].base_lsn
    snapshot = maybe_snapshot(copied, DIRECTORY)
    assert snapshot is not None and snapshot.topics[0] == b"old" and snapshot.offsets[0] == 3
    assert snapshot.publishers[1] == b"gone"
    store = opened(copied.after_power_loss(lambda n: 0))
    assert store.recovered[0].gaps == []
    assert store.partitions[0].first_lsn == first.base_lsn
    assert store.partitions[0].topic_names == partition.topic_names
    assert list(store.partitions[0].next_offsets) == list(partition.next_offsets)


def test_a_new_copy_begins_where_the_leader_begins_with_its_names() -> None:
    files = SimulatedFiles()
    partition = opened(files, segment_bytes_max=SEGMENT_BYTES).partitions[0]
    append(partition, [(b"old", b"x")] * 3, client_id="gone")
    for group in range(9):
        append(partition, some_records(10, 10 * group))
        write(partition)
    index_leader(partition)
    removal = partition.take_removal(partition.segments.files[1].base_lsn)
    assert removal is not None
    removal.run()
    partition.removed(removal)
    copied = SimulatedFiles()
    mirror = mirror_of(copied)
    mirror.cut([], "", 0, 0, partition.first_lsn)
    mirror.adopt_names(files.content(f"{DIRECTORY}/topics.snap"))
    copy_all(files, partition, mirror)
    index(mirror)
    same_bytes(files, states(partition), copied)
    store = opened(copied.after_power_loss(lambda n: 0))
    assert store.recovered[0].gaps == []
    assert store.partitions[0].first_lsn == partition.first_lsn > 0
    assert store.partitions[0].topic_names == partition.topic_names
    assert list(store.partitions[0].next_offsets) == list(partition.next_offsets)
    assert same_publishers(store.partitions[0], partition)


def test_zeros_are_written_ahead_behind_a_mark_as_well() -> None:
    """Lone messages, each followed by its mark: the copy ends within a page."""
    files = SimulatedFiles()
    partition = opened(files, segment_bytes_max=1 << 20, hot=1 << 20).partitions[0]
    copied = SimulatedFiles()
    mirror = MirrorPartition(copied, DIRECTORY, "main", 0)
    sizes = []
    for n in range(60):
        append(partition, some_records(1, n))
        write(partition)
        mark(partition)
        copy_all(files, partition, mirror)
        assert mirror.position % 4096 == 128
        sizes.append(len(copied.content(segments(copied)[0])))
    assert all(size >= 4096 * (n + 2) for n, size in enumerate(sizes)) and len(set(sizes)) < 6, "not at each sync"
    same_bytes(files, states(partition), copied)
    assert recovered(copied.after_power_loss(lambda n: 0)) == everything(partition)[0]


def test_a_group_costs_a_write_and_a_sync() -> None:
    files, partition = leader_with(1)
    copied = SimulatedFiles()
    mirror = mirror_of(copied)
    copy_all(files, partition, mirror)
    assert mirror.make_room() is None
    append(partition, some_records(10, 10))
    write(partition)
    state = states(partition)[-1]
    data, _ = read_block(files, f"{DIRECTORY}/{state.name}", mirror.position, state.stop, 1)
    calls, looks = len(copied.calls), len(copied.looks)
    size = copied.size(f"{DIRECTORY}/{state.name}")
    looks += 1
    mirror.write(state.name, mirror.position, data)
    mirror.sync()
    assert [name for name, _ in copied.calls[calls:]] == ["write", "sync"]
    assert len(copied.looks) == looks
    assert copied.size(f"{DIRECTORY}/{state.name}") == size > mirror.position, "into zeros written before"


def test_a_failed_sync_is_not_tried_again() -> None:
    files, partition = leader_with(2)
    copied = SimulatedFiles()
    mirror = mirror_of(copied)
    copy(files, states(partition), 0, mirror, bytes_max=1, writes_max=1, writes_between=9)
    copied.fail = {len(copied.calls): 5}
    with pytest.raises(OSError):
        mirror.sync()
    for act in (mirror.sync, mirror.make_room, lambda: mirror.trim(5), lambda: mirror.cut([], "", 0, 0, 0)):
        with pytest.raises(LogFailure, match="open it anew"):
            act()
    assert mirror.synced_lsn == 0

"""Another process reads what the files prove, while a broker writes and after it was killed.

docs/reference/log-format.md, "Reading"."""

import os
from threading import Thread

import pytest

from commitlog import Chunk, Gap, RealFiles
from commitlog.read.log_reader import LogReader
from commitlog.read.partition_view import PartitionView
from commitlog.read.verify import verify
from commitlog.testing.simulated_files import SimulatedFiles
from tests.commitlog.records import (
    NOW,
    append,
    everything,
    filled,
    index,
    mark,
    opened,
    records_of,
    rows_of,
    segments,
    some_records,
    view,
    viewed,
    write,
)

ALIVE = f"pid {os.getpid()}\n"


def test_no_data_directory_is_told() -> None:
    with pytest.raises(FileNotFoundError, match="no data directory of rumq"):
        LogReader(SimulatedFiles(), "data")


def test_what_a_live_broker_has_not_marked_is_not_read() -> None:
    files = SimulatedFiles()
    partition = opened(files, holder=ALIVE).partitions[0]
    assert view(files.beside()).end_lsn == 0
    append(partition, some_records(10))
    write(partition)
    assert view(files.beside()).end_lsn == 0, "no chunk says yet that it is committed"
    append(partition, some_records(10, 10))
    write(partition)
    assert view(files.beside()).end_lsn == 10
    mark(partition)
    assert view(files.beside()).end_lsn == 20
    assert records_of(viewed(view(files.beside()))[0]) == some_records(20)


def test_of_a_dead_broker_everything_whole_is_read() -> None:
    files = SimulatedFiles()
    partition = opened(files).partitions[0]
    append(partition, some_records(10))
    write(partition)
    assert view(files.beside()).end_lsn == 10


@pytest.mark.parametrize("text", ["", "pid\n", "somebody", "pid x\n"])
def test_a_lock_that_names_nobody_counts_as_held(text: str) -> None:
    files = SimulatedFiles()
    partition = opened(files, holder=text).partitions[0]
    append(partition, some_records(10))
    write(partition)
    assert view(files.beside()).end_lsn == 0


def test_a_sealed_segment_and_one_that_was_given_up_are_read_to_their_ends() -> None:
    files = SimulatedFiles()
    partition = opened(files, holder=ALIVE, segment_bytes_max=12_000).partitions[0]
    for first in range(0, 50, 10):
        append(partition, some_records(10, first))
        write(partition)
    sealed_end = partition.segments.active.base_lsn
    assert view(files.beside()).end_lsn == max(sealed_end, 40)
    append(partition, some_records(10, 50))
    files.fail = {len(files.calls) + 1: 5, len(files.calls) + 2: 5, len(files.calls) + 3: 5}
    write(partition)
    seen = view(files.beside())
    assert viewed(seen)[1] == []
    assert records_of(viewed(seen)[0]) == some_records(seen.end_lsn)
    assert seen.end_lsn >= 50
    files.fail = {}
    write(partition)
    mark(partition)
    assert records_of(viewed(view(files.beside()))[0]) == some_records(60)


def test_chunks_are_clipped_at_both_ends() -> None:
    files = SimulatedFiles()
    partition = opened(files, segment_bytes_max=12_000).partitions[0]
    for first in range(0, 50, 10):
        append(partition, some_records(10, first), tags={n: 100 + n for n in range(10)}, client_id="dev")
        write(partition)
    index(partition)
    everything_there, _ = viewed(view(files.beside()))
    seen = view(files.beside())
    for start in range(0, 52, 3):
        for end in range(start, 54, 5):
            found, gaps = viewed(seen, start, end)
            assert found == everything_there[start:end] and gaps == []
    assert [s.tag for s in viewed(seen, 13, 16)[0]] == [103, 104, 105]


def test_damage_is_clipped_too() -> None:
    files = filled()
    files.damage(segments(files)[0], 4096 + 4096 + 300)
    seen = view(files)
    assert [(g.base_lsn, g.next_lsn) for g in viewed(seen, 12, 18)[1]] == [(12, 18)]
    assert [(g.base_lsn, g.next_lsn) for g in viewed(seen, 5, 25)[1]] == [(10, 20)]


def test_damage_in_what_a_live_broker_writes_is_a_gap() -> None:
    files = SimulatedFiles()
    partition = opened(files, holder=ALIVE).partitions[0]
    for first in range(0, 40, 10):
        append(partition, some_records(10, first))
        write(partition)
    mark(partition)
    files.damage(segments(files)[0], 4096 + 4096 + 30)  # a header
    found, gaps = viewed(view(files.beside()))
    assert records_of(found) == some_records(10) + some_records(20, 20)
    assert [(g.base_lsn, g.next_lsn) for g in gaps] == [(10, 20)]


def test_names_are_those_of_the_partition() -> None:
    files = SimulatedFiles()
    store = opened(files, segment_bytes_max=12_000)
    for first in range(0, 50, 10):
        append(
            store.partitions[0],
            [*some_records(10, first), (b"only/%d" % first, b"x")],
            client_id=f"dev{first}",
        )
        write(store.partitions[0])
    topics = dict(enumerate(store.partitions[0].topic_names))
    publishers = store.partitions[0].publisher_names.copied(1 << 32)
    found, clients = view(files.beside()).names()
    assert found == topics and clients == publishers
    store.close()
    assert view(files.beside()).names() == (topics, publishers)


def test_segments_are_listed_with_their_bounds() -> None:
    files = SimulatedFiles()
    partition = opened(files, segment_bytes_max=12_000).partitions[0]
    for first in range(0, 50, 10):
        append(partition, some_records(10, first), NOW + first)
        write(partition)
    seen = view(files.beside())
    listed = seen.segments()
    assert [(s.base_lsn, s.end_lsn, s.sealed) for s in listed] == [
        (0, 20, True),
        (20, 40, True),
        (40, 50, False),
    ]
    assert [(s.first_ts - NOW, s.last_ts - NOW) for s in listed] == [(0, 10), (20, 30), (40, 40)]
    assert [s.bytes for s in listed] == [files.size(path) for path in segments(files)]
    assert (seen.name, seen.first_lsn, seen.end_lsn) == ("main/g1/p0", 0, 50)


def test_a_reader_beside_a_writer_sees_a_growing_log_that_never_changes(tmp_path) -> None:  # type: ignore[no-untyped-def]
    """A real disk, two threads as two processes: every view is a whole piece of what was written."""
    root = str(tmp_path / "data")
    store = opened(RealFiles(), root=root, holder=ALIVE, segment_bytes_max=30_000, retention_bytes_max=200_000)
    partition = store.partitions[0]
    done = False

    def read() -> None:
        last_end = 0
        while not (done and last_end == 3000):
            seen = LogReader(RealFiles(), root).partitions()[0]
            assert seen.end_lsn >= last_end
            last_end = seen.end_lsn
            lsn = max(seen.first_lsn, seen.end_lsn - 300)
            for piece in seen.chunks(lsn, seen.end_lsn):
                if isinstance(piece, Gap):
                    # Only what retention took while we looked.
                    assert "gone" in piece.why or "no segment" in piece.why
                else:
                    names = dict(enumerate(partition.topic_names)), {}
                    found = [(s.lsn, s.topic, s.payload) for s in rows_of(piece, names)]  # type: ignore[arg-type]
                    assert found == [
                        (n, *record)
                        for n, record in enumerate(some_records(piece.count, piece.base_lsn), piece.base_lsn)
                    ]
            assert [f for f in verify(RealFiles(), root) if f.severity == "error"] == []

    fault: list[BaseException] = []

    def guarded() -> None:
        try:
            read()
        except BaseException as problem:
            fault.append(problem)

    reader = Thread(target=guarded)
    reader.start()
    for first in range(0, 3000, 10):
        append(partition, some_records(10, first))
        write(partition)
        if first % 7 == 0:
            index(partition)
        if first % 500 == 0 and (removal := partition.take_retention(NOW)) is not None:
            removal.run()
            partition.removed(removal)
    mark(partition)
    done = True
    reader.join(60)
    assert fault == [] and not reader.is_alive()
    assert isinstance(partition.cold_read(partition.first_lsn).run()[0], Chunk)
    store.close()
    assert everything(opened(RealFiles(), root=root).partitions[0])[0][-1].lsn == 2999


@pytest.mark.parametrize("holder", [ALIVE, f"pid {2**22 + 1}\n"])
def test_of_a_copy_in_a_cluster_only_what_its_marks_prove_is_read(holder: str) -> None:
    """Also of segments that have ended, and of a node that is dead: another leader may cut what is behind the marks."""
    files = SimulatedFiles()
    partition = opened(files, holder=holder, segment_bytes_max=12_000).partitions[0]
    partition.replicated_lsn = 0  # a majority has nothing yet
    files.create("data/_cluster")

    def committed() -> PartitionView:
        return LogReader(files.beside(), "data", only_committed=True).partitions()[0]

    for first in range(0, 50, 10):
        append(partition, some_records(10, first))
        write(partition)
    assert len(segments(files)) > 2
    assert (committed().end_lsn, committed().awaits_mark) == (0, True)
    assert view(files.beside()).end_lsn >= 40, "a broker alone shows them"
    partition.note_replicated(25)
    mark(partition)
    seen = committed()
    assert records_of(viewed(seen)[0]) == some_records(25) and viewed(seen)[1] == []
    assert [s.end_lsn for s in seen.segments() if s.finished] == [
        s.end_lsn for s in view(files.beside()).segments() if s.finished and s.end_lsn <= 25
    ]
    assert seen.segment_of(24) and not seen.segment_of(25)
    partition.note_replicated(50)
    mark(partition)
    seen = committed()
    assert (seen.end_lsn, seen.awaits_mark) == (50, False)
    assert records_of(viewed(seen)[0]) == some_records(50)

"""A data directory: who may open it, what is said when it cannot be, and where a topic is kept."""

import errno
import os
import subprocess
import sys

import pytest

from commitlog import (
    Chunk,
    DirectoryInUse,
    FormatTooNew,
    NotWritable,
    RealFiles,
    StoreError,
    StreamSpec,
    open_store,
)
from commitlog.chunk import FLAG_QOS, FLAG_RETAIN
from commitlog.log.store_layout import OpenOptions, StoreLayout
from commitlog.read.verify import verify
from commitlog.streams import partition_of
from commitlog.testing.simulated_files import SimulatedFiles
from commitlog.write.volatile import VolatilePartition
from tests.commitlog.records import (
    DEAD,
    DIRECTORY,
    NOW,
    append,
    everything,
    numbers,
    opened,
    records_of,
    segments,
    some_records,
    write,
)


def test_a_directory_has_one_broker_and_says_who() -> None:
    files = SimulatedFiles()
    store = opened(files, holder="pid 4711\n")
    with pytest.raises(DirectoryInUse, match=r"another broker holds it \(pid 4711\): stop that one"):
        opened(files.beside())
    store.close()
    opened(files.beside())


def test_each_run_that_has_written_anything_has_an_epoch_of_its_own_everywhere() -> None:
    """One that showed records and died before it wrote any is told from the next one, which writes others."""
    files, epochs = SimulatedFiles(), list[list[int]]()
    for run in range(4):
        layout = StoreLayout(
            [StreamSpec("main", ("#",), 2)], lambda f, t: True, internal=StreamSpec("_state", (), 1, "disk", 1 << 16),
            volatile=lambda index: VolatilePartition(StreamSpec("stats", ()), index, now_us=NOW),
        )  # fmt: skip
        store = open_store(files, "data", layout, OpenOptions(NOW, random=numbers(run)), holder=DEAD)
        assert store.internal is not None
        assert [each.index for each in [*store.partitions, store.internal]] == [0, 1, 2, 3]
        epochs.append([partition.starts[-1][0] for partition in store.own])
        writes = store.internal if run % 2 else store.own[0]
        append(writes, some_records(1))
        write(writes)
        files = files.after_kill()
    assert epochs == [[1, 1], [2, 2], [3, 3], [4, 4]]


def test_a_real_directory_is_let_go_when_its_process_dies(tmp_path) -> None:  # type: ignore[no-untyped-def]
    root = str(tmp_path / "data")
    script = (
        "import sys; from commitlog import *; "
        "s = open_store(RealFiles(), sys.argv[1], StoreLayout([StreamSpec('main', ('#',))], lambda f, t: True), "
        "OpenOptions(1), holder='pid 1\\n'); print('open', flush=True); sys.stdin.read()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script, root], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stdout.readline() == "open\n"
    with pytest.raises(DirectoryInUse):
        opened(RealFiles(), root=root)
    process.kill()
    process.wait()
    opened(RealFiles(), root=root).close()


def test_a_newer_format_is_refused_and_left_alone() -> None:
    files = SimulatedFiles()
    opened(files).close()
    files.put("data/FORMAT", b"rumq 2\n")
    with pytest.raises(
        FormatTooNew, match="its format is 'rumq 2', this version reads 'rumq 1': use the rumq that wrote"
    ):
        opened(files)
    files.put("data/FORMAT", b"rumq 1\n")
    opened(files)  # the refusal let the lock go


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (errno.EROFS, "read-only: remount it"),
        (errno.ENOSPC, "full: make room"),
        (errno.EACCES, "may not write there: change the owner"),
        (errno.EIO, "Input/output error: give another --data"),
    ],
)
def test_a_directory_that_cannot_be_written_is_refused_with_what_to_do(number: int, said: str) -> None:
    for begun in (False, True):
        files = SimulatedFiles()
        if begun:
            opened(files).close()
        files.broken = number
        with pytest.raises(NotWritable, match=f"^data directory data: .*{said}"):
            opened(files)


def test_a_file_in_the_place_of_the_directory_is_refused(tmp_path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "file").write_text("x")
    for root in ("file", "file/data"):
        with pytest.raises(NotWritable, match="it is a file, not a directory"):
            opened(RealFiles(), root=str(tmp_path / root))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere; the simulated disk shows the same")
def test_a_real_directory_that_is_not_ours_is_refused(tmp_path) -> None:  # type: ignore[no-untyped-def]
    tmp_path.chmod(0o500)
    with pytest.raises(NotWritable, match="change the owner"):
        opened(RealFiles(), root=str(tmp_path / "data"))


def test_a_stream_name_that_a_segment_has_no_room_for_is_refused() -> None:
    with pytest.raises(StoreError, match="longer than 64 bytes"):
        open_store(
            SimulatedFiles(), "data", StoreLayout([StreamSpec("s" * 65, ("#",))], lambda f, t: True), OpenOptions(1)
        )


def test_a_store_that_was_never_written_to_opens_again_and_again() -> None:
    files = SimulatedFiles()
    for end in range(6):
        store = opened(files, seed=end)
        assert store.partitions[0].next_lsn == 0
        assert store.recovered[0].clean and store.recovered[0].gaps == []
        assert segments(files) == []
        if end % 3 == 0:
            assert store.close() == []
        else:
            files = files.after_kill() if end % 3 == 1 else files.after_power_loss(lambda n: 0)
    assert list(verify(files, "data")) == []


def test_the_first_record_of_a_new_directory_survives_a_power_loss() -> None:
    """Every directory above it was synced, up to the one that was there."""
    files = SimulatedFiles()
    store = opened(files, root="a/b/data")
    append(store.partitions[0], some_records(1))
    write(store.partitions[0])
    again = opened(files.after_power_loss(lambda n: 0), root="a/b/data")
    assert records_of(everything(again.partitions[0])[0]) == some_records(1)


def test_a_stop_leaves_nothing_to_look_through() -> None:
    files = SimulatedFiles()
    for turn in range(3):
        store = opened(files, seed=turn)
        append(store.partitions[0], some_records(10, 10 * turn))
        write(store.partitions[0])
        assert store.close() == []
        files = files.after_kill()
        store = opened(files, seed=100 + turn)
        assert store.recovered[0].clean and store.recovered[0].torn_bytes == 0
        assert store.close() == []  # nothing written: nothing sealed, nothing new
    assert len(segments(files)) == 3
    assert [name for name in files.names(DIRECTORY) if name.endswith(".idx")] == [
        path.rpartition("/")[2].replace(".seg", ".idx") for path in segments(files)
    ]
    assert list(verify(files, "data")) == []


def test_a_start_does_not_read_the_segments_that_a_snapshot_covers() -> None:
    files = SimulatedFiles()
    for turn in range(3):
        store = opened(files, seed=turn)
        append(store.partitions[0], some_records(10, 10 * turn))
        write(store.partitions[0])
        store.close()
    sizes: list[int] = []

    class Counted(SimulatedFiles):
        def read(self, handle: int, position: int, size: int) -> bytes:
            found = super().read(handle, position, size)
            if self._open[handle][1] == segments(files)[0]:
                sizes.append(len(found))
            return found

    store = opened(Counted(files.root))
    assert sum(sizes) <= 4096 + 128
    assert list(store.partitions[0].next_offsets) == [10, 10, 10]


def test_topics_are_spread_over_partitions_by_a_stable_hash() -> None:
    files = SimulatedFiles()
    store = opened(files, partitions=4)
    topics = [f"plant/{n}" for n in range(100)]
    assert {store.place(topic) for topic in topics} == {0, 1, 2, 3}
    assert [store.place(topic) for topic in topics] == [partition_of(topic, 4) for topic in topics]
    assert partition_of("plant/7", 4) == 3, "for ever"


def test_a_topic_goes_to_the_first_stream_that_wants_it() -> None:
    streams = [StreamSpec("pumps", ("pump/#",), 2), StreamSpec("rest", ("#",))]
    store = open_store(
        SimulatedFiles(), "data", StoreLayout(streams, lambda f, t: t.startswith(f.removesuffix("#"))), OpenOptions(1)
    )
    assert store.place("pump/1") in (0, 1)
    assert store.place("fan/1") == store.place("$own") == 2
    assert [p.directory for p in store.partitions] == [
        "data/pumps/g1/p0",
        "data/pumps/g1/p1",
        "data/rest/g1/p0",
    ]
    only = open_store(SimulatedFiles(), "data", StoreLayout(streams[:1], lambda f, t: False), OpenOptions(1))
    with pytest.raises(ValueError, match="add one with the filter '#'"):
        only.place("fan/1")


def test_chunks_with_a_flag_are_found_by_the_index() -> None:
    files = SimulatedFiles()
    store = opened(files, segment_bytes_max=12_000)
    for first in range(0, 60, 10):
        append(store.partitions[0], some_records(10, first), flags=FLAG_QOS | (FLAG_RETAIN if first % 20 else 0))
        write(store.partitions[0])
    store = opened(files.after_kill(), seed=500)
    found = list(store.chunks_with(store.partitions[0], FLAG_RETAIN))
    assert all(isinstance(chunk, Chunk) and chunk.flags & FLAG_RETAIN for chunk in found)
    assert [chunk.base_lsn for chunk in found] == [10, 30, 50]
    later = store.chunks_with(store.partitions[0], FLAG_RETAIN, from_lsn=35)
    assert [chunk.base_lsn for chunk in later] == [30, 50]


def test_errors_survive_a_trip_to_another_process() -> None:
    import pickle

    for fault in (DirectoryInUse("d", "p"), NotWritable("d", "q"), FormatTooNew("d", "r")):
        again = pickle.loads(pickle.dumps(fault))
        assert type(again) is type(fault) and str(again) == str(fault)

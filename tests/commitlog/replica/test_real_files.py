"""A copy in files of the machine."""

from pathlib import Path

from commitlog import RealFiles
from commitlog.replica.block_reader import read_block, read_opening
from commitlog.replica.inventory import states_of
from commitlog.replica.mirror_partition import MirrorPartition
from tests.commitlog.records import append, everything, mark, opened, preallocate, some_records, write


def test_a_log_opened_on_a_copy_is_that_of_the_leader(tmp_path: Path) -> None:
    files = RealFiles()
    root, other = str(tmp_path / "a"), str(tmp_path / "b")
    partition = opened(files, root=root, segment_bytes_max=1 << 18, hot=1 << 20).partitions[0]
    mirror = MirrorPartition(files, f"{other}/main/g1/p0", "main", 0, segment_bytes_max=1 << 18)
    for group in range(120):
        append(partition, some_records(10, 10 * group), tags={3: 7})
        write(partition)
        preallocate(partition)
        ours = states_of(
            partition.segments.files, partition.directory, partition.written_lsn, partition.writer.position
        )
        for state in ours[-2:]:
            path = f"{partition.directory}/{state.name}"
            if state.base_lsn == mirror.next_lsn and state.name != mirror.tail[0]:
                mirror.open_segment(state.name, read_opening(files, path))
            while state.name == mirror.tail[0] and mirror.position < state.stop:
                data, _ = read_block(files, path, mirror.position, state.stop, 1 << 16)
                mirror.write(state.name, mirror.position, data)
        mirror.sync()
        if mirror.wants_room():
            mirror.make_room()
    mark(partition)
    assert mirror.synced_lsn == 1200
    mirror.note_committed(1200)
    while (job := mirror.take_seal_job()) is not None:
        job.run()
    mirror.close()
    store = opened(files, root=other)
    assert store.recovered[0].gaps == []
    assert everything(store.partitions[0]) == everything(partition)
    for path in Path(f"{other}/main/g1/p0").glob("*.seg"):
        content = path.read_bytes()
        assert (Path(partition.directory) / path.name).read_bytes()[: len(content)].startswith(content.rstrip(b"\0"))

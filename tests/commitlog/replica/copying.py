"""A leader's partition, a copy of it, and the sending between them as a cluster does it, without a network."""

from collections.abc import Sequence

from commitlog import Partition
from commitlog.log.copy_packing import CopyPacking
from commitlog.replica.block_reader import read_block, read_opening, saved_names
from commitlog.replica.differences import difference
from commitlog.replica.inventory import SegmentState, states_of
from commitlog.replica.mirror_partition import MirrorPartition
from commitlog.testing.simulated_files import SimulatedFiles
from tests.commitlog.records import DIRECTORY, Seen, everything, opened

SEGMENT_BYTES = 20_000


def states(partition: Partition) -> list[SegmentState]:
    """Of the leader, between two groups."""
    return states_of(partition.segments.files, DIRECTORY, partition.written_lsn, partition.writer.position)


def mirror_of(files: SimulatedFiles) -> MirrorPartition:
    return MirrorPartition(files, DIRECTORY, "main", 0, segment_bytes_max=SEGMENT_BYTES)


def align(
    files: SimulatedFiles, ours: Sequence[SegmentState], first_lsn: int, mirror: MirrorPartition
) -> tuple[int, int]:
    """Cut what the leader does not have, and send the names of what it has removed to a copy that begins there;
    returns (segment, byte) from which it must send."""
    found = difference(ours, mirror.segments)
    mirror.cut(
        found.drop, found.name, found.end_lsn, found.stop, first_lsn, salt=found.salt, refill=found.refill,
        refill_lsn=found.refill_lsn,
    )  # fmt: skip
    if first_lsn > 0 and not mirror.segments:
        mirror.adopt_names(saved_names(files, DIRECTORY))
    return found.send_index, found.position


def copy(
    files: SimulatedFiles, ours: Sequence[SegmentState], first_lsn: int, mirror: MirrorPartition,
    *, bytes_max: int = 1 << 16, writes_between: int = 1, writes_max: int = 1 << 30,
) -> None:  # fmt: skip
    """Send what the copy lacks. writes_between: syncs; writes_max: stop after so many, without a sync"""
    at, position = align(files, ours, first_lsn, mirror)
    writes = 0
    while at < len(ours):
        state = ours[at]
        path = f"{DIRECTORY}/{state.name}"
        if not position:
            mirror.open_segment(state.name, read_opening(files, path, state.salt))
            position = 4096
        while position < state.stop:
            if writes == writes_max:
                return
            data, following = read_block(files, path, position, state.stop, bytes_max, state.salt)
            mirror.write(state.name, position, data)
            position = following
            writes += 1
            if writes % writes_between == 0:
                mirror.sync()
        at, position = at + 1, 0
    mirror.sync()
    if mirror.wants_room():
        mirror.make_room()


def copy_all(files: SimulatedFiles, partition: Partition, mirror: MirrorPartition, **how: int) -> None:
    copy(files, states(partition), partition.first_lsn, mirror, **how)


def index(mirror: MirrorPartition) -> None:
    mirror.note_committed(mirror.synced_lsn)
    while (job := mirror.take_seal_job()) is not None:
        job.run()


def pack(mirror: MirrorPartition, salt: int) -> int:
    """Pack what is finished, indexed and committed, as a node does; returns how many segments."""
    packed = 0
    packings = CopyPacking(mirror._files, mirror.directory)
    while (packing := packings.take(mirror.segments, mirror.packable_below, salt + 2 * packed)) is not None:
        while not packing.step():
            pass
        packed += packing.packed is not None and mirror.replace_packed(packing)
    return packed


def same_bytes(files: SimulatedFiles, ours: Sequence[SegmentState], copied: SimulatedFiles) -> None:
    """Each segment of the leader is in the copy, byte for byte up to its end."""
    for state in ours:
        path = f"{DIRECTORY}/{state.name}"
        assert copied.content(path)[: state.stop] == files.content(path)[: state.stop], state.name


def recovered(files: SimulatedFiles, seed: int = 900) -> list[Seen]:
    """The records that a start on these files finds; nothing is reported lost."""
    store = opened(files, seed=seed)
    found = store.recovered[0]
    assert (found.gaps, found.known_gaps, found.short, found.unreadable, found.repaired) == (
        [],
        [],
        [],
        [],
        [],
    )
    seen, gaps = everything(store.partitions[0])
    assert gaps == []
    return seen

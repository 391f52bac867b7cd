"""A cut of a copy at any moment: the log is a prefix of one of the two, and what was cut does not come back."""

from collections.abc import Sequence

import pytest

from commitlog import Partition
from commitlog.errors import CutBelowCommitted
from commitlog.index.dictionary import maybe_snapshot
from commitlog.replica.inventory import inventory
from commitlog.testing.simulated_files import SimulatedFiles
from tests.commitlog.records import (
    DIRECTORY,
    Seen,
    append,
    everything,
    index,
    opened,
    same_publishers,
    some_records,
    write,
)
from tests.commitlog.replica.copying import SEGMENT_BYTES, align, copy_all, mirror_of, recovered, states
from tests.commitlog.test_log_agrees_with_a_list import PowerLost, chooser, power_for

LOSSES = ([0], [1], [0, 1], [1, 0], [3, 1, 0, 0], [3, 0, 1, 1, 0], [2, 0, 0, 1, 0, 1, 1], [3, 1, 1, 0, 1])


def history(seed: int, groups: int, files: SimulatedFiles, *, stop: bool = False) -> list[Seen]:
    """So many groups more on these files; returns the log."""
    store = opened(files, segment_bytes_max=SEGMENT_BYTES, seed=seed)
    partition = store.partitions[0]
    for group in range(groups):
        records = [*some_records(9, 1000 * seed + 10 * group), (b"only %d" % seed, b"x")]
        append(partition, records, client_id=f"client {seed}")
        assert write(partition)
    found = everything(partition)[0]
    if stop:
        index(partition)
        assert store.close() == []
    return found


def two_logs() -> tuple[SimulatedFiles, SimulatedFiles, list[Seen]]:
    """The files of a leader; those of a node with the same beginning and a long tail of its own, and its log."""
    files, others = SimulatedFiles(), SimulatedFiles()
    history(1, 6, files)
    files = files.after_kill()
    mirror = mirror_of(others)
    copy_all(files, opened(files, segment_bytes_max=SEGMENT_BYTES, seed=50).partitions[0], mirror)
    mirror.close()
    others = others.after_kill()
    theirs = history(2, 14, others, stop=True)
    return files.after_kill(), others.after_kill(), theirs


def cut_short(
    partition: Partition, others: SimulatedFiles, call: int, loss: Sequence[int]
) -> tuple[SimulatedFiles, bool]:
    """The copy is cut for a leader, and loses its power at a call. returns: what is left of it, and whether the cut was
    over by then"""
    mirror = mirror_of(others)
    others.before_call = power_for(call)
    done = False
    try:
        align(partition.files, states(partition), 0, mirror)
        done = True
    except PowerLost:
        pass
    return others.after_power_loss(chooser(loss)), done


def leading(files: SimulatedFiles) -> Partition:
    """The leader's partition, with a record of its own term."""
    partition = opened(files, segment_bytes_max=SEGMENT_BYTES, seed=60).partitions[0]
    append(partition, [(b"new", b"y")], client_id="another")
    write(partition)
    return partition


def test_a_power_loss_at_any_call_of_a_cut_leaves_a_prefix_of_a_log() -> None:
    """Of the old log or of what is to be left, without a hole; and the next attempt succeeds."""
    done = False
    call = 0
    while not done:
        for loss in LOSSES:
            files, others, theirs = two_logs()
            assert len(theirs) == 200
            partition = leading(files)
            others, is_over = cut_short(partition, others, call, loss)
            done = done or is_over
            mirror = mirror_of(others)
            assert mirror.doubt == "", f"call {call}, {loss}"
            if done:
                assert mirror.next_lsn == 60, "what was cut does not come back"
            assert recovered(others.after_kill()) == theirs[: mirror.next_lsn]
            mirror = mirror_of(others.after_kill())
            copy_all(files, partition, mirror)
            assert recovered(others.after_power_loss(chooser(loss))) == everything(partition)[0]
        call += 1
    assert call > 10


def trimmed_and_two_logs() -> tuple[SimulatedFiles, SimulatedFiles, list[Seen]]:
    """As `two_logs`; retention has removed on the node whatever both have."""
    files, others, theirs = two_logs()
    mirror = mirror_of(others)
    mirror.trim(60)
    assert mirror.first_lsn == 60
    mirror.close()
    return files, others.after_kill(), theirs[60:]


def test_a_power_loss_at_any_call_while_a_copy_begins_anew_leaves_one_that_can_be_filled() -> None:
    """Nothing that retention has left on it is in the leader's log, which begins before: it is filled from there."""
    done = False
    call = 0
    while not done:
        for loss in LOSSES:
            files, others, theirs = trimmed_and_two_logs()
            partition = leading(files)
            others, is_over = cut_short(partition, others, call, loss)
            done = done or is_over
            mirror = mirror_of(others)
            assert mirror.doubt == "", f"call {call}, {loss}"
            if done or mirror.first_lsn == 0:
                assert (mirror.first_lsn, mirror.next_lsn, mirror.committed_lsn) == (0, 0, 0)
                assert maybe_snapshot(others, DIRECTORY) is None, "names come with the segments"
            else:
                assert recovered(others.after_kill()) == theirs[: mirror.next_lsn - 60]
            copy_all(files, partition, mirror)
            others = others.after_power_loss(chooser(loss))
            assert recovered(others.after_kill()) == everything(partition)[0]
            successor = opened(others).partitions[0]
            assert successor.topic_names == partition.topic_names
            assert same_publishers(successor, partition)
            assert list(successor.next_offsets) == list(partition.next_offsets)
        call += 1
    assert call > 10


def test_a_copy_with_records_that_are_committed_does_not_begin_anew() -> None:
    _, others, _ = trimmed_and_two_logs()
    mirror = mirror_of(others)
    drop = [each.name for each in mirror.segments]
    assert mirror.begins_anew(drop, "", 0) and not mirror.begins_anew(drop, "", 60)
    assert not mirror.begins_anew(drop[1:], "", 0) and not mirror.begins_anew(drop[1:], drop[0], 0)
    mirror.note_committed(61)
    assert not mirror.begins_anew(drop, "", 0)
    with pytest.raises(CutBelowCommitted):
        mirror.cut(drop, "", 0, 0, 0)
    assert (mirror.first_lsn, mirror.next_lsn) == (60, 200)


def test_names_that_only_the_cut_records_had_are_forgotten() -> None:
    """Their numbers may be given to others; offsets go back to what is left."""
    files, others, _ = two_logs()
    snapshot = maybe_snapshot(others, DIRECTORY)
    assert snapshot is not None and snapshot.lsn == 200 and b"only 2" in snapshot.topics
    partition = leading(files)
    mirror = mirror_of(others)
    align(files, states(partition), 0, mirror)
    snapshot = maybe_snapshot(others, DIRECTORY)
    assert snapshot is not None and snapshot.lsn == 60
    assert b"only 1" in snapshot.topics and b"only 2" not in snapshot.topics
    copy_all(files, partition, mirror)
    successor = opened(others.after_power_loss(lambda n: 0)).partitions[0]
    assert successor.topic_names == partition.topic_names
    assert same_publishers(successor, partition)
    assert list(successor.next_offsets) == list(partition.next_offsets)


def test_a_cut_that_changes_nothing_costs_nothing() -> None:
    files = SimulatedFiles()
    history(1, 6, files)
    partition = opened(files.after_kill(), segment_bytes_max=SEGMENT_BYTES, seed=50).partitions[0]
    others = SimulatedFiles()
    mirror = mirror_of(others)
    copy_all(files, partition, mirror)
    calls = len(others.calls)
    align(files, states(partition), 0, mirror)
    assert len(others.calls) == calls
    assert inventory(others.after_kill(), DIRECTORY, "main", 0) == mirror.segments

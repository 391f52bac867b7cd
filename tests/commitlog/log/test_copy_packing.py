"""A copy packs what is finished, committed and indexed, for itself; whatever fails, it is a copy of the same log."""

import pytest

from commitlog import Partition
from commitlog.format.manifest import decode_edits, encode_edit
from commitlog.format.segment import BESIDE
from commitlog.log.copy_packing import CopyPacking
from commitlog.read.verify import verify
from commitlog.testing.simulated_files import SimulatedFiles
from tests.commitlog.records import DIRECTORY, Seen, everything
from tests.commitlog.replica.copying import copy_all, index, mirror_of, pack, recovered, states
from tests.commitlog.replica.tail.test_refill import leading, more
from tests.commitlog.test_log_agrees_with_a_list import PowerLost, chooser, power_for

LOSSES = ([0], [1], [1, 0], [3, 0, 1, 1, 0])
SALT = 1 << 40 | 1


def copied(*, is_earlier: bool = False) -> tuple[SimulatedFiles, Partition, SimulatedFiles]:
    """A leader's files and partition, and those of a copy that has everything and knows it to be committed.

    is_earlier: a version that noted no salts has written the copy's manifest"""
    files, others = SimulatedFiles(), SimulatedFiles()
    partition = leading(files, 10)
    mirror = mirror_of(others)
    copy_all(files, partition, mirror)
    index(mirror)
    mirror.close()
    others = others.after_kill()
    if is_earlier:
        path = f"{DIRECTORY}/MANIFEST"
        edits = decode_edits(others.content(path))
        for edit in edits:
            edit.pop("salt", None)
        others.put(path, b"".join(map(encode_edit, edits)))
    return files, partition, others


def test_all_but_the_last_are_packed_and_stay_a_copy_of_the_log() -> None:
    files, partition, others = copied()
    before = everything(partition)[0]
    mirror = mirror_of(others)
    assert pack(mirror, SALT) == 0, "what is committed is told anew after a start"
    index(mirror)
    sizes = [each.stop for each in mirror.segments]
    assert pack(mirror, SALT) == len(sizes) - 1
    assert all(3 * now.stop < size for now, size in zip(mirror.segments[:-1], sizes[:-1], strict=True))
    assert pack(mirror, 2 * SALT) == 0, "they were looked at"
    more(partition, 50, 8)
    copy_all(files, partition, mirror)
    assert [each.name for each in mirror.segments] == [each.name for each in states(partition)]
    again = mirror_of(others.after_kill())
    assert (again.doubt, again.segments) == ("", mirror.segments)
    assert recovered(others.after_kill()) == everything(partition)[0] and everything(partition)[0][:10] == before
    assert [found for found in verify(others.beside(), "data") if found.severity != "note"] == []


def test_what_is_not_committed_or_not_indexed_stays() -> None:
    files = SimulatedFiles()
    mirror = mirror_of(SimulatedFiles())
    copy_all(files, leading(files, 10), mirror)
    ends = [each.end_lsn for each in mirror.segments]
    mirror.note_committed(ends[1] - 1)
    packing = CopyPacking(mirror._files, DIRECTORY)
    assert packing.take(mirror.segments, mirror.packable_below, SALT) is None, "it has no index yet"
    while (job := mirror.take_seal_job()) is not None:
        job.run()
    assert pack(mirror, SALT) == 1
    assert packing.take(mirror.segments[1:], mirror.packable_below, SALT) is None, "it is not committed"
    mirror.note_committed(ends[1])
    while (job := mirror.take_seal_job()) is not None:
        job.run()
    assert pack(mirror, 3 * SALT) == 1


@pytest.mark.parametrize("who", ["a later process", "a later version", "who has written it"])
def test_a_power_loss_at_any_call_leaves_a_sound_copy(who: str) -> None:
    done, call = False, 0
    before: list[Seen] = []
    while not done:
        for loss in LOSSES:
            files, partition, others = copied(is_earlier=who == "a later version")
            before = before or everything(partition)[0]
            if who == "who has written it":
                mirror = mirror_of(others := SimulatedFiles())
                copy_all(files, partition, mirror)
            others.before_call = power_for(call)
            try:
                if who != "who has written it":
                    mirror = mirror_of(others)
                index(mirror)
                pack(mirror, SALT)
                done = True
            except PowerLost:
                pass
            others = others.after_power_loss(chooser(loss))
            mirror = mirror_of(others)
            assert mirror.doubt == "" and mirror.next_lsn == len(before), f"call {call}, {loss}"
            assert not any(name.endswith(BESIDE) for name in others.names(DIRECTORY))
            assert recovered(others.after_kill()) == before
        call += 1
    assert call > 30


def test_a_segment_that_was_packed_meanwhile_is_not_cut_at_a_byte_of_the_file_before() -> None:
    """Its leader has compared the file that was there, which has a seal that the leader's own copy lacks."""
    _, partition, others = copied()
    mirror = mirror_of(others)
    index(mirror)
    first, second = mirror.segments[:2]
    assert pack(mirror, SALT) > 0
    drop = [each.name for each in mirror.segments[1:]]
    mirror.forget_committed()
    mirror.cut(drop, first.name, first.end_lsn, first.stop - 128, 0, salt=first.salt)
    assert mirror.next_lsn == first.end_lsn == second.base_lsn
    assert recovered(others.after_kill()) == everything(partition)[0][: first.end_lsn]

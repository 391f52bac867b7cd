"""The manifest of a partition whose segments come and go does not grow with them."""

import pytest

from commitlog.format.manifest import EDITS_MIN, NAME, Edit, Manifest, decode_edits
from commitlog.testing.simulated_files import SimulatedFiles
from tests.commitlog.records import DIRECTORY, append, everything, index, opened, some_records, write


def test_a_partition_that_loses_segments_as_it_gets_them_keeps_a_short_list() -> None:
    files = SimulatedFiles()
    store = opened(files, segment_bytes_max=9000)
    partition = store.own[0]
    longest = 0
    for group in range(2 * EDITS_MIN):
        append(partition, some_records(2, 2 * group))
        write(partition)
        index(partition)
        removal = partition.take_removal(partition.next_lsn)
        if removal is not None:
            removal.run()
            partition.removed(removal)
        longest = max(longest, len(decode_edits(files.content(f"{DIRECTORY}/{NAME}"))))
    assert longest <= EDITS_MIN + 3
    first, end = partition.first_lsn, partition.next_lsn
    again = opened(files.after_kill(), segment_bytes_max=9000, seed=1)
    found, gaps = everything(again.own[0])
    assert [seen.lsn for seen in found] == list(range(first, end)) and not gaps
    assert not again.recovered[0].unreadable and not again.recovered[0].leftover


def seal(number: int) -> Edit:
    return {"edit": "seal", "segment": f"{number:020d}-0000000a.seg", "end_lsn": number + 1, "stop": 4096}


@pytest.mark.parametrize("is_left", [False, True])
def test_what_is_said_of_a_segment_stays_while_its_file_does(is_left: bool) -> None:
    """A removal may have been cut off behind its "first": the next start finishes it, for segments that it knows."""
    files = SimulatedFiles()
    files.make_directory("d")
    if is_left:
        files.put("d/" + seal(3)["segment"], b"left")
    files.put("d/" + seal(EDITS_MIN)["segment"], b"live")
    manifest = Manifest(files, "d")
    manifest.rewrite([seal(number) for number in range(EDITS_MIN + 1)])
    manifest.add({"edit": "first", "lsn": EDITS_MIN - 5})
    manifest.add({"edit": "gap", "base_lsn": 0, "next_lsn": 9, "why": "lost"})
    assert len(manifest.edits) == EDITS_MIN + 3, "the files of that one are still there"
    for number in range(1, 2 * EDITS_MIN):
        manifest.add(seal(EDITS_MIN + number))
    manifest.add({"edit": "first", "lsn": EDITS_MIN - 4})
    kept = Manifest(files, "d").load()
    assert kept == manifest.edits
    assert (seal(3) in kept) is is_left and seal(EDITS_MIN - 3) in kept and seal(EDITS_MIN) in kept
    assert seal(EDITS_MIN - 6) not in kept and not [edit for edit in kept if edit["edit"] == "gap"]
    assert [edit["lsn"] for edit in kept if edit["edit"] == "first"] == [EDITS_MIN - 5, EDITS_MIN - 4]

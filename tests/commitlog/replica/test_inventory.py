"""What a copy knows of itself: its segments and their ends, and what makes it doubt."""

import pytest

from commitlog.format.manifest import Manifest
from commitlog.replica.inventory import CopySurvey, SegmentState, inventory, survey
from commitlog.testing.simulated_files import SimulatedFiles
from tests.commitlog.records import DIRECTORY, append, mark, opened, segments, some_records, write
from tests.commitlog.replica.copying import copy_all, mirror_of, recovered, states


def log_of(groups: int) -> tuple[SimulatedFiles, list[SegmentState]]:
    files = SimulatedFiles()
    partition = opened(files, segment_bytes_max=20_000).partitions[0]
    for group in range(groups):
        append(partition, some_records(10, 10 * group))
        write(partition)
    mark(partition)
    return files.after_kill(), states(partition)


def survey_of(files: SimulatedFiles) -> CopySurvey:
    return survey(files, DIRECTORY, Manifest(files, DIRECTORY).load(), "main", 0)


def test_the_ends_are_those_of_the_writer() -> None:
    files, expected = log_of(9)
    assert inventory(files, DIRECTORY, "main", 0) == expected
    files.remove(f"{DIRECTORY}/MANIFEST")
    assert inventory(files, DIRECTORY, "main", 0) == expected, "without a manifest all is scanned"
    assert survey_of(files).doubt == ""


def test_nothing_is_read_of_a_segment_that_the_manifest_ends() -> None:
    files, expected = log_of(9)
    before = len(files.looks)
    inventory(files, DIRECTORY, "main", 0)
    first = f"{DIRECTORY}/{expected[0].name}"
    looks = [name for name, path in files.looks[before:] if path == first]
    assert looks == ["size", "open", "read"], "its header"


def test_a_partition_that_does_not_exist_has_no_segment() -> None:
    assert inventory(SimulatedFiles(), DIRECTORY, "main", 0) == []


def test_after_a_start_every_segment_is_done() -> None:
    files, expected = log_of(9)
    opened(files)
    assert inventory(files.after_kill(), DIRECTORY, "main", 0) == [one._replace(is_done=True) for one in expected]


@pytest.mark.parametrize("at", [0, 1, -2])
def test_a_segment_that_is_lost_is_a_doubt(at: int) -> None:
    files, expected = log_of(12)
    files.remove(f"{DIRECTORY}/{expected[at].name}")
    found = survey_of(files)
    assert "no segment has" in found.doubt


def test_a_last_segment_that_is_lost_is_a_doubt() -> None:
    files, expected = log_of(12)
    files.remove(f"{DIRECTORY}/{expected[-1].name}")
    assert "it is missing" in survey_of(files).doubt


def test_damage_below_a_mark_is_a_doubt_and_only_what_is_before_it_counts() -> None:
    files, expected = log_of(2)
    (path,) = segments(files)
    files.damage(path, 4096 + 200)
    found = survey_of(files)
    assert "cannot be read" in found.doubt
    assert found.segments == [expected[0]._replace(end_lsn=0, stop=4096)]


def test_a_doubtful_copy_that_was_cut_and_filled_is_whole() -> None:
    """What is behind the damage is sent again."""
    leader = SimulatedFiles()
    partition = opened(leader, segment_bytes_max=20_000, hot=1 << 20).partitions[0]
    for group in range(9):
        append(partition, some_records(10, 10 * group))
        write(partition)
    copied = SimulatedFiles()
    mirror = mirror_of(copied)
    copy_all(leader, partition, mirror)
    mirror.close()
    copied = copied.after_kill()
    copied.damage(f"{DIRECTORY}/{mirror_of(copied).tail[0]}", 4096 + 200)
    copied.remove(f"{DIRECTORY}/{segments(copied)[1].rpartition('/')[2]}")
    mirror = mirror_of(copied)
    assert mirror.doubt
    content = {path: copied.content(path) for path in segments(copied)}
    copied = copied.after_kill()
    assert content == {path: copied.content(path) for path in segments(copied)}, "it is left as it is"
    mirror = mirror_of(copied)
    copy_all(leader, partition, mirror)
    assert mirror.doubt == "" and mirror.next_lsn == 90
    assert len(recovered(copied.after_power_loss(lambda n: 0))) == 90

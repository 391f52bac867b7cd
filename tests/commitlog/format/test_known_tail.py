"""What was read of a segment as it was written is what a recovery of it finds."""

import pytest

from commitlog.format.chunk_position import ChunkPosition
from commitlog.format.known_tail import KnownTail, TailReader
from commitlog.format.manifest import Manifest
from commitlog.index.index import load_places
from commitlog.log.recovery import Recovered, recover
from commitlog.testing.simulated_files import SimulatedFiles
from tests.commitlog.records import DIRECTORY, NOW, append, mark, opened, write


def log(chunks: int, *, segment_bytes_max: int = 1 << 20, big: int = 0) -> SimulatedFiles:
    """Of a broker that was killed: nothing is sealed at its end."""
    files = SimulatedFiles()
    partition = opened(files, segment_bytes_max=segment_bytes_max).own[0]
    for number in range(chunks):
        records = [(b"t/%d" % (number * row % 7), b"x" * 40) for row in range(1 + number % 3)]
        append(partition, records, NOW + number, client_id=f"c{number % 4}")
        write(partition)
        if number % 9 == 0:
            mark(partition)
    if big:
        append(partition, [(b"t/big", b"x" * 1000)] * big, NOW + chunks)
        write(partition)
    return files


def recovered(files: SimulatedFiles, tail: KnownTail | None) -> Recovered:
    return recover(files, DIRECTORY, Manifest(files, DIRECTORY), "main", 0, NOW, tail)


def end(files: SimulatedFiles) -> tuple[str, int, int]:
    """Name, stop and end lsn of the last segment, as a recovery finds them."""
    last = recovered(files, None).segments[-1]
    assert last.end_lsn is not None
    return last.path.rpartition("/")[2], last.logical_end, last.end_lsn


@pytest.mark.parametrize(
    ("chunks", "segment_bytes_max", "big"), [(1, 1 << 20, 0), (60, 1 << 20, 0), (60, 1 << 13, 0), (3, 1 << 22, 900)]
)
def test_a_recovery_finds_the_same_with_what_is_known(chunks: int, segment_bytes_max: int, big: int) -> None:
    files = log(chunks, segment_bytes_max=segment_bytes_max, big=big)
    name, stop, end_lsn = end(files)
    tail = TailReader(files, DIRECTORY).maybe_known(name, stop)
    assert tail is not None and tail.end_lsn == end_lsn
    plain, known = recovered(files, None), recovered(files, tail)
    for field in (
        "next_lsn",
        "first_lsn",
        "topic_names",
        "next_offsets",
        "last_ts",
        "edits",
        "clean",
    ):
        assert getattr(known, field) == getattr(plain, field), field
    names = plain.publishers
    assert known.publishers.next_number == names.next_number
    assert known.publishers.copied(names.next_number) == names.copied(names.next_number) != {}
    assert [(s.path, s.end_lsn, s.logical_end, s.indexed) for s in known.segments] == [
        (s.path, s.end_lsn, s.logical_end, s.indexed) for s in plain.segments
    ]
    assert recovered(files, tail._replace(last_ts=7)).last_ts == 7  # it is used


def test_what_is_written_later_is_read_on_and_a_cut_begins_anew() -> None:
    files = log(40)
    name, stop, _ = end(files)
    places = [(p.position, p.next_lsn) for p in recovered_places(files)]
    reader = TailReader(files, DIRECTORY)
    for position, _ in places[1:5]:
        assert not reader.read_on(name, position, 1)
    early = reader.maybe_known(name, places[5][0])
    assert early is not None and early.end_lsn == places[4][1]
    early = early._replace(names=dict(early.names), publishers=dict(early.publishers))  # the reader's own grow
    assert reader.maybe_known(name, stop) == TailReader(files, DIRECTORY).maybe_known(name, stop)
    reader.begin("")
    assert reader.maybe_known(name, places[5][0]) == early


def recovered_places(files: SimulatedFiles) -> list[ChunkPosition]:
    name, stop, _ = end(files)
    return load_places(files, f"{DIRECTORY}/{name}", -1, stop)


def test_little_is_not_read_before_it_is_asked_for() -> None:
    files = log(3)
    name, stop, _ = end(files)
    reader = TailReader(files, DIRECTORY)
    assert not reader.read_on(name, stop)
    assert reader.read_on(name, stop, 0) is False and reader.maybe_known(name, stop) is not None


@pytest.mark.parametrize("at", [4096 + 50, 4096 + 130])  # of the first chunk: its header, its rows
def test_nothing_is_known_of_a_damaged_segment(at: int) -> None:
    files = log(20)
    name, stop, _ = end(files)
    handle = files.open(f"{DIRECTORY}/{name}", write=True)
    files.write(handle, at, [b"\xff\xff"])
    assert TailReader(files, DIRECTORY).maybe_known(name, stop) is None


def test_what_is_known_of_another_segment_or_a_longer_one_is_not_used() -> None:
    files = log(20)
    name, stop, _ = end(files)
    tail = TailReader(files, DIRECTORY).maybe_known(name, stop)
    assert tail is not None
    for other in (tail._replace(name="x.seg", last_ts=7), tail._replace(stop=1 << 40, last_ts=7)):
        assert recovered(files, other).last_ts == NOW + 19

"""The client ids of a partition's publishers in memory are bounded, and every record keeps its own."""

import gc
from collections.abc import Iterator

import pytest

from commitlog import Chunk, Partition
from commitlog.index.dictionary import maybe_snapshot
from commitlog.log import recovery as recovery_module
from commitlog.log.partition import HOT_TRIM
from commitlog.names.publisher_names import PublisherNames
from commitlog.testing.simulated_files import SimulatedFiles
from tests.commitlog.records import DIRECTORY, append, client_ids, everything, opened, write

KEPT = 8


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """KEPT names of those that nobody uses."""

    def names(known: dict[int, bytes], end: int, kept_max: int = KEPT) -> PublisherNames:
        return PublisherNames(known, end, kept_max)

    monkeypatch.setattr(recovery_module, "PublisherNames", names)


def sessions(partition: Partition, numbers: range) -> None:
    """Each publishes one record and ends."""
    for number in numbers:
        append(partition, [(b"t", b"%d" % number)], client_id=f"c{number}")
        partition.release_publisher(partition.publisher_names.known(b"c%d" % number))
        write(partition)


def test_names_that_nobody_uses_are_dropped_oldest_first_and_those_that_are_held_stay() -> None:
    names = PublisherNames({}, 1, 2)
    held = names.hold(b"held")
    for at in range(10):
        names.release(names.hold(b"c%d" % at))
        names.trim(at, 1 << 40)
        names.trim(at, 1 << 40)
    assert names.get(held) == b"held" and len(names) == 3
    assert [names.known(b"c%d" % at) for at in (7, 8, 9)] == [0, 10, 11]
    assert names.hold(b"c7") == 12, "a number is never given to another client id, nor twice"
    assert names.next_number == 13


def test_a_number_that_is_held_twice_is_released_twice() -> None:
    names = PublisherNames({}, 1, 0)
    one, same = names.hold(b"c"), names.hold(b"c")
    assert one == same
    names.release(one)
    for _ in range(3):
        names.trim(1, 1 << 40)
    assert names.get(one) == b"c"
    names.release(one)
    for _ in range(3):
        names.trim(1, 1 << 40)
    assert names.get(one) == b"" and names.has_dropped


def test_a_name_stays_as_long_as_its_records_may_be_in_memory_or_are_not_appended_yet() -> None:
    names = PublisherNames({}, 1, 0)
    number = names.hold(b"c")
    names.release(number)  # in a turn whose records are appended at its end, as lsn 0 to 9
    names.trim(0, 0)
    assert names.get(number)
    names.trim(10, 5)
    names.trim(10, 9)
    assert names.get(number), "record 9 is in memory"
    names.trim(20, 10)
    assert not names.get(number)


def test_who_returns_before_that_keeps_its_number() -> None:
    names = PublisherNames({}, 1, 0)
    number = names.hold(b"c")
    names.release(number)
    names.trim(0, 1 << 40)
    assert names.hold(b"c") == number
    for _ in range(3):
        names.trim(0, 1 << 40)
    assert names.get(number) == b"c"


@pytest.mark.usefixtures("few")
def test_every_record_has_its_publisher_however_many_there_were() -> None:
    """Read from memory, from the segment that is being written, and from others, after a crash and after a stop."""
    files = SimulatedFiles()
    store = opened(files, segment_bytes_max=4_000)
    partition = store.partitions[0]
    append(partition, [(b"t", b"first")], client_id="always there")
    sessions(partition, range(100))
    expected = [b"always there", *(b"c%d" % number for number in range(100))]
    assert len(partition.segments.files) > 3
    for now in (partition, opened(files.after_power_loss(lambda n: 0)).partitions[0]):
        assert [seen.client_id for seen in everything(now)[0]] == expected
        assert len(now.publisher_names) <= KEPT + 2 * HOT_TRIM
        assert now.publisher_names.next_number == 102
    assert partition.publisher_names.get(1) == b"always there"
    store.close()
    again = opened(files).partitions[0]
    assert again.publisher_names.next_number == 102, "of those that are dropped too"
    assert [seen.client_id for seen in everything(again)[0]] == expected
    snapshot = maybe_snapshot(files, DIRECTORY)
    assert snapshot is not None and len(snapshot.publishers) <= KEPT + 2 * HOT_TRIM and snapshot.publishers_end == 102


@pytest.mark.usefixtures("few")
def test_a_new_segment_names_a_publisher_that_was_there_before_all_others() -> None:
    """A segment can be read without any other file."""
    files = SimulatedFiles()
    partition = opened(files, segment_bytes_max=4_000).partitions[0]
    partition.add_publisher("always there")
    for round_ in range(5):
        sessions(partition, range(30 * round_, 30 * round_ + 30))
        append(partition, [(b"t", b"again")], client_id="always there")
        write(partition)
        (chunk,) = partition.cold_read(partition.next_lsn - 1).run()
        assert isinstance(chunk, Chunk)
        assert client_ids(partition, chunk) == {1: b"always there"}
    with_it = [
        segment.path for segment in partition.segments.files
        if segment.draft is not None and segment.draft.index.publishers.get(1) == b"always there"
    ]  # fmt: skip
    assert len(with_it) >= 3


def soak(clients: int) -> Iterator[tuple[int, int]]:
    """(sessions so far, entries of names in memory), 20 times, while so many clients publish once each and end."""
    files = SimulatedFiles()
    partition = opened(files, durability="process", segment_bytes_max=1 << 18).partitions[0]
    assert isinstance(partition.publisher_names, PublisherNames)
    for first in range(0, clients, clients // 20):
        for at in range(first, first + clients // 20, 50):
            for number in range(at, at + 50):
                append(partition, [(b"t", b"x")], client_id=f"client-{number}")
                partition.release_publisher(partition.publisher_names.known(b"client-%d" % number))
            write(partition)
            partition.cold_read(max(partition.first_lsn, partition.next_lsn - 100), 1).run()
        for segment in partition.segments.files[:-1]:  # as the index job does, without its file
            segment.draft = None
        removal = partition.take_removal(partition.segments.files[-1].base_lsn)
        if removal is not None:
            removal.run()
            partition.removed(removal)
        gc.collect()
        names = partition.publisher_names
        kept = sum(len(getattr(names, slot)) for slot in ("_names", "_numbers", "_held", "_unused", "_leaving"))
        yield first + clients // 20, kept


@pytest.mark.usefixtures("few")
def test_short_sessions_leave_nothing_behind() -> None:
    """Entries, not bytes: 1,000 clients that publish once and go."""
    for done, kept in soak(1_000):
        assert kept < 400, (done, kept)


@pytest.mark.long
def test_a_million_short_sessions_leave_no_more_than_the_bound() -> None:
    counts = dict(soak(1_000_000))
    assert max(counts.values()) <= 3 * (1 << 16) + 1_000, counts
    assert counts[1_000_000] <= counts[200_000] + 1_000, "it does not go on rising"

"""A small group takes a way of its own to the segment: what it leaves there is what the general way leaves.

The same groups are written in three ways: small ones in theirs, each in the general one, and all of them as one of many
records. docs/explanation/architecture.md, "A shard and its turn"."""

from copy import deepcopy
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from commitlog import Partition
from commitlog.index.index import read_segment
from commitlog.index.index_builder import Index
from commitlog.testing.simulated_files import SimulatedFiles
from tests.commitlog.records import (
    DIRECTORY,
    NOW,
    Record,
    Seen,
    append,
    everything,
    index,
    mark,
    opened,
    preallocate,
    same_publishers,
    segments,
    write,
)

TOPICS = st.sampled_from([b"a", b"b/c", b"long/topic/name"])
PAYLOADS = st.one_of(st.binary(max_size=60), st.integers(0, 5000).map(bytes))


class Batch(NamedTuple):
    """What a turn appends to a partition. qos2: each second record has the packet id of an inbound QoS 2 message"""

    records: list[Record]
    later_us: int
    client_id: str
    qos2: bool


BATCHES = st.builds(
    Batch,
    st.lists(st.tuples(TOPICS, PAYLOADS), min_size=1, max_size=4),
    st.integers(0, 10_000),
    st.sampled_from(["", "dev", "dev", "other"]),
    st.sampled_from([False, False, False, True]),
)
GROUPS = st.lists(
    st.tuples(
        st.one_of(st.lists(BATCHES, min_size=1, max_size=1), st.lists(BATCHES, min_size=1, max_size=3)),
        st.sampled_from(["", "", "mark", "room"]),
    ),
    min_size=1,
    max_size=12,
)
Groups = list[tuple[list[Batch], str]]


class Log:
    """small: small groups in their way; many: all records as one group"""

    def __init__(self, durability: str, groups: Groups, *, small: bool = False, many: bool = False) -> None:
        self.files, self.durability = SimulatedFiles(), durability
        self.store = opened(self.files, durability=durability)
        self.partition = self.store.partitions[0]
        now = NOW
        for batches, behind in groups:
            for batch in batches:
                now += batch.later_us
                tags = {row: 7 + row for row in range(0, len(batch.records), 2)} if batch.qos2 else {}
                append(self.partition, batch.records, now, batch.client_id, tags)
            if not many:
                assert write(self.partition, small=small)
                if behind == "mark":
                    mark(self.partition)
                elif behind == "room":
                    preallocate(self.partition, always=True)
        if many:
            assert write(self.partition, small=False)

    def contents(self) -> dict[str, bytes]:
        return {name: self.files.content(f"{DIRECTORY}/{name}") for name in self.files.names(DIRECTORY)}

    def index(self) -> Index:
        (path,) = segments(self.files)
        return read_segment(self.files, path)

    def after_cut(self, at: int) -> Partition:
        """What a start finds, of the segment's first bytes only."""
        files = SimulatedFiles(deepcopy(self.files.root))  # others find what this start changes nowhere
        (path,) = segments(files)
        files.put(path, files.content(path)[:at])
        return opened(files, durability=self.durability, seed=1000).partitions[0]

    def records_below(self, at: int) -> int:
        """Those whose chunks end by this byte of the segment."""
        return sum(
            place.count for place in self.partition.segments.active.places if place.position + place.total_len <= at
        )


def rows_by_topic(found: Index) -> dict[int, tuple[int, int, int, list[int]]]:
    return {
        topic: (of.records, of.first, of.following, found.rows[of.start : of.start + of.records].tolist())
        for topic, of in found.topics.items()
    }


def seen(partition: Partition) -> list[Seen]:
    found, gaps = everything(partition)
    assert gaps == []
    return found


DURABILITIES = st.sampled_from(["disk", "process"])


@settings(deadline=None)
@given(durability=DURABILITIES, groups=GROUPS)
def test_the_bytes_are_those_of_the_general_way(durability: str, groups: Groups) -> None:
    one, other = Log(durability, groups, small=True), Log(durability, groups)
    assert one.contents() == other.contents()
    ours, theirs = one.partition, other.partition
    assert ours.segments.active.places == theirs.segments.active.places
    for number in ("next_lsn", "written_lsn", "durable_lsn", "marked_lsn", "pending_bytes", "wants_room", "last_ts"):
        assert getattr(ours, number) == getattr(theirs, number), number
    assert one.files.calls == other.files.calls, "written and synced in the same order"
    for log in (one, other):
        assert log.store.close() == []
        index(log.partition)
    assert one.contents() == other.contents(), "the index too"


@settings(deadline=None)
@given(durability=DURABILITIES, groups=GROUPS)
def test_records_and_index_are_those_of_one_group_of_many_records(durability: str, groups: Groups) -> None:
    one, many = Log(durability, groups, small=True), Log(durability, groups, many=True)
    assert seen(one.partition) == seen(many.partition)
    assert rows_by_topic(one.index()) == rows_by_topic(many.index())
    assert one.index().names == many.index().names
    draft = one.partition.writer._draft.finished()
    assert rows_by_topic(draft) == rows_by_topic(one.index()) and draft.places == one.index().places
    assert same_publishers(one.partition, many.partition)


@settings(deadline=None, max_examples=60)
@given(durability=DURABILITIES, groups=GROUPS, where=st.lists(st.floats(0, 1), min_size=1, max_size=4))
def test_after_a_cut_at_any_byte_whole_chunks_are_there(durability: str, groups: Groups, where: list[float]) -> None:
    one, other = Log(durability, groups, small=True), Log(durability, groups)
    many = Log(durability, groups, many=True)
    expected = seen(one.partition)
    (path,) = segments(one.files)
    size, size_of_many = len(one.files.content(path)), len(many.files.content(segments(many.files)[0]))
    places = one.partition.segments.active.places
    cuts = {4096 + round(part * (size - 4096)) for part in where}
    cuts |= {end + by for place in places[-3:] for end in [place.position + place.total_len] for by in (-1, 0, 1)}
    for cut in sorted(at for at in cuts if 4096 <= at <= size):
        ours, theirs = one.after_cut(cut), other.after_cut(cut)
        assert seen(ours) == seen(theirs) == expected[: one.records_below(cut)]
        assert ours.next_lsn == theirs.next_lsn and same_publishers(ours, theirs)
    for part in where:
        cut = 4096 + round(part * (size_of_many - 4096))
        assert seen(many.after_cut(cut)) == expected[: many.records_below(cut)]

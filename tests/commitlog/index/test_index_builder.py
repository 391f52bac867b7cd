"""However rows are cut into chunks, and whatever is missing between them, their index is that of a list."""

from hypothesis import given
from hypothesis import strategies as st

from commitlog.format.chunk_position import ChunkPosition
from commitlog.index.index_builder import FEW_MAX, IndexBuilder

BASE_LSN = 1 << 40
CHUNKS = st.lists(
    st.tuples(
        st.lists(st.one_of(st.integers(0, 5), st.integers(1000, 3000)), min_size=1, max_size=40),  # topics of its rows
        st.sampled_from([0, 0, 0, 1, 7]),  # lsns missing before it
        st.integers(0, 9).map(bool),  # whether its rows can be read
    ),
    max_size=30,
)


def rows_of(topics: list[int], offsets: dict[int, int]) -> bytearray:
    rows = bytearray(32 * len(topics))
    words = memoryview(rows).cast("I")
    for row, topic in enumerate(topics):
        words[8 * row], words[8 * row + 2] = topic, offsets.get(topic, 0)
        offsets[topic] = offsets.get(topic, 0) + 1
    return rows


@given(chunks=CHUNKS)
def test_rows_of_chunks_of_any_size_are_found_by_topic(chunks: list[tuple[list[int], int, bool]]) -> None:
    builder, lsn, offsets = IndexBuilder(), BASE_LSN, dict[int, int]()
    expected: dict[int, list[int]] = {}
    first: dict[int, int] = {}
    places = []
    for topics, missing, is_readable in chunks:
        lsn += missing
        before = dict(offsets)
        rows = rows_of(topics, offsets)
        place = ChunkPosition(lsn, 4096 * len(places), 7, len(topics), 4096, 0, 0)
        builder.add(place, BASE_LSN, rows if is_readable else None, [], [])
        places.append(place)
        if is_readable:
            for row, topic in enumerate(topics, lsn - BASE_LSN):
                first.setdefault(topic, before.get(topic, 0))
                expected.setdefault(topic, []).append(row)
        lsn += len(topics)
    index = builder.finished()
    found = {topic: index.rows[of.start : of.start + of.records].tolist() for topic, of in index.topics.items()}
    assert found == expected and index.places == places
    assert {topic: of.first for topic, of in index.topics.items()} == first


def test_a_column_of_lone_rows_ends_after_some_and_goes_on_in_another() -> None:
    builder, offsets = IndexBuilder(), dict[int, int]()
    for lsn in range(2 * FEW_MAX + 5):
        builder.add(ChunkPosition(lsn, 0, 1, 1, 64, 0, 0), 0, rows_of([3], offsets), [], [])
    assert len(builder._columns) == 2
    assert builder.finished().rows.tolist() == list(range(2 * FEW_MAX + 5))

"""Small chunks joined into larger ones have the same records, gaps and tags, in order."""

from hypothesis import given
from hypothesis import strategies as st

from commitlog import Chunk, Gap
from commitlog.format.joined_chunks import joined
from commitlog.testing.simulated_files import SimulatedFiles
from tests.commitlog.records import NOW, append, opened, rows_of


@given(st.lists(st.integers(1, 5) | st.just(0), max_size=8), st.integers(1, 1000))
def test_chunks_that_are_joined_have_the_same_records(sizes: list[int], bytes_max: int) -> None:
    """sizes: of chunks one behind the other; 0: a gap of three records is in between"""
    partition = opened(SimulatedFiles()).own[0]
    pieces: list[Chunk | Gap] = []
    lsn = 0
    for size in sizes:
        if size:
            some = [(b"t/%d" % n, b"%d" % (lsn + n)) for n in range(size)]
            made = append(partition, some, ts=NOW + lsn, tags={size - 1: 7 + lsn})
            pieces.append(Chunk(lsn, size, made.base_ts, made.flags, made.rows, made.frames, made.tags))
        else:
            pieces.append(Gap(lsn, lsn + 3, "damaged"))
        lsn += size or 3
    names = dict(enumerate(partition.topic_names)), {0: b"", **partition.publisher_names.copied(1 << 32)}

    def records(chunks: list[Chunk | Gap]) -> list[object]:
        return [each for one in chunks for each in ([one] if isinstance(one, Gap) else rows_of(one, names))]

    together = [*joined(pieces)]
    assert records(together) == records(pieces)
    gaps = sum(isinstance(each, Gap) for each in pieces)
    assert len(together) <= 2 * gaps + 1
    in_parts = [*joined(pieces, bytes_max)]
    assert records(in_parts) == records(pieces)
    for one in in_parts:
        if isinstance(one, Chunk) and len(one.rows) + len(one.frames) > bytes_max:
            assert one in pieces, "only a chunk that was as large may be larger"


def test_what_a_shard_has_published_elsewhere_is_that_of_the_last_chunk() -> None:
    partition = opened(SimulatedFiles()).own[0]
    one, two = (append(partition, [(b"t", b"x")]) for _ in range(2))
    one.sources, two.sources = b"a" * 8 + b"b" * 8, b"a" * 8 + b"c" * 8
    (together,) = joined([one, two])
    assert isinstance(together, Chunk) and together.sources == two.sources

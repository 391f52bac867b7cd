"""A chunk's position is its numbers: as they go into an index they come out of it."""

from commitlog.format.chunk_position import ChunkPosition

NUMBERS = (1 << 40, 1 << 33, 1 << 50, 3, 8192, 33, 7)


def test_it_is_its_numbers() -> None:
    place = ChunkPosition(*NUMBERS)
    assert tuple(place) == NUMBERS and place == ChunkPosition(*place) != ChunkPosition(*NUMBERS[:6], 8)
    assert hash(place) == hash(ChunkPosition(*NUMBERS)) and place != NUMBERS
    assert repr(place) == f"ChunkPosition{NUMBERS}"


def test_it_says_where_its_records_end() -> None:
    place = ChunkPosition(*NUMBERS)
    assert (place.next_lsn, place.last_ts) == ((1 << 40) + 3, (1 << 50) + 7)

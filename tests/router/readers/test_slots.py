"""A code of the in-flight window has room for a reader, a partition and whether the message was retained."""

import pytest

from router.readers.slots import (
    PARTITION_BITS,
    PARTITION_MASK,
    READERS_MAX,
    RETAINED_CODE,
    partition_of,
    reader_of,
)


@pytest.mark.parametrize("reader", [0, 1, READERS_MAX])
@pytest.mark.parametrize("partition", [0, 1, PARTITION_MASK])
@pytest.mark.parametrize("retained", [0, RETAINED_CODE])
def test_a_code_gives_back_what_it_is_made_of(reader: int, partition: int, retained: int) -> None:
    code = reader << PARTITION_BITS | partition | retained
    assert (reader_of(code), partition_of(code), code & RETAINED_CODE) == (reader, partition, retained)
    assert code < 1 << 32

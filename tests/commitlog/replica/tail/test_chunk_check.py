"""Chunks that are whole, and are not the next ones."""

import pytest

from commitlog import Damaged
from commitlog.chunk import MARK, SEAL, encode_header
from commitlog.replica.tail.chunk_check import Checked, checked

SALT = 77


def bare(kind: int, lsn: int, chain: int, salt: int = SALT) -> tuple[bytes, int]:
    return encode_header(kind, 0, salt, lsn, 0, b"", b"", b"", 128, 1, 0, 0, 1, chain, 0, 0, 1)


def test_each_chunk_follows_the_one_before_in_chain_and_lsn() -> None:
    first, chain = bare(MARK, 5, 0)
    second, last = bare(SEAL, 5, chain)
    assert checked(first + second, SALT, 0, 5, "s", 4096) == Checked(5, last, True)
    assert checked(memoryview(first), SALT, 0, 5, "s", 4096) == Checked(5, chain, False)


def test_records_that_are_missing_are_seen_although_the_chain_is_whole() -> None:
    first, chain = bare(MARK, 5, 0)
    second, _ = bare(MARK, 6, chain)
    with pytest.raises(Damaged, match="s at 4224: the chunk begins at lsn 6, and 5 is next; nothing of it was written"):
        checked(first + second, SALT, 0, 5, "s", 4096)


def test_nothing_follows_a_seal() -> None:
    first, chain = bare(SEAL, 5, 0)
    second, _ = bare(MARK, 5, chain)
    with pytest.raises(Damaged, match="behind the one that seals"):
        checked(first + second, SALT, 0, 5, "s", 4096)


def test_a_chunk_of_another_segment_is_seen() -> None:
    raw, _ = bare(MARK, 5, 0, salt=78)
    with pytest.raises(Damaged, match="of another segment"):
        checked(raw, SALT, 0, 5, "s", 4096)

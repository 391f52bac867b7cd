"""Bytes in a ring: what is put at a position is taken from there, also across the ring's end."""

import mmap

from hypothesis import given
from hypothesis import strategies as st

from rumq.net.kernels.shared_memory import load, put, store, take

START = 24


@given(
    size=st.integers(1, 64),
    position=st.integers(0, 1 << 40),
    parts=st.lists(st.binary(max_size=40), max_size=5),
    kind=st.sampled_from([bytes, bytearray, memoryview]),
)
def test_what_is_put_is_taken_and_nothing_else_is_touched(
    size: int, position: int, parts: list[bytes], kind: type
) -> None:
    while sum(map(len, parts)) > size:
        parts.pop()
    before = bytes(range(START + size + 8))
    shared = bytearray(before)
    put(shared, START, size, position, tuple(kind(part) for part in parts))
    whole = b"".join(parts)
    taken = take(shared, START, size, position, len(whole))
    assert taken == whole and type(taken) is bytearray
    at = position % size
    ring = bytearray(before[START : START + size])
    for offset, byte in enumerate(whole):
        ring[(at + offset) % size] = byte
    assert shared == before[:START] + ring + before[START + size :]


def test_rows_are_put_as_the_bytes_that_they_are() -> None:
    shared = bytearray(32)
    put(shared, 0, 32, 0, (memoryview(bytearray(b"\x01\0\0\0\x02\0\0\0")).cast("I"), b"end"))
    assert take(shared, 0, 32, 0, 11) == b"\x01\0\0\0\x02\0\0\0end"


@given(value=st.integers(0, (1 << 64) - 1))
def test_a_number_is_the_one_that_was_stored(value: int) -> None:
    shared = mmap.mmap(-1, 4096)
    store(shared, 64, value)
    assert load(shared, 64) == value and shared[64:72] == value.to_bytes(8, "little")
    assert not any(shared[:64]) and not any(shared[72:])

"""Rings between two shards: bytes come out as they went in, no room is no fault, and nonsense is refused."""

import fcntl
import os
from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rumq.net.kernels import shared_memory
from rumq.shards.bus.shared_ring import (
    HEAD_BYTES,
    NODE_BYTES_MAX,
    RING_BYTES_MAX,
    SEALS,
    TAKEN_AT,
    SharedRing,
    ring_bytes,
)

SIZE = 1 << 12


@pytest.fixture(autouse=True, scope="module")
def ordered() -> object:
    """One process is enough of an order for the kernel as Python."""
    patch = pytest.MonkeyPatch()
    patch.setattr(shared_memory, "IS_ORDERED", True)
    yield
    patch.undo()


def both_sides(size: int = SIZE) -> tuple[SharedRing, SharedRing]:
    made = SharedRing.make(size)
    assert made is not None
    other = SharedRing.accept(made[1])
    assert other is not None
    return made[0], other


@given(
    steps=st.lists(
        st.tuples(st.integers(0, 1), st.lists(st.integers(0, SIZE), min_size=1, max_size=3), st.integers(0, 3)),
        max_size=40,
    )
)
def test_what_one_side_puts_the_other_takes_in_the_same_order(steps: list[tuple[int, list[int], int]]) -> None:
    """Each step: a side puts buffers of these lengths, then the other side takes some of what was put."""
    sides = both_sides()
    waiting = deque[tuple[int, bytes]](), deque[tuple[int, bytes]]()
    seed = 0
    for side, lengths, takes in steps:
        parts = []
        for length in lengths:
            seed += 1
            parts.append(bytes((seed + at) % 251 for at in range(length)))
        whole = b"".join(parts)
        unread = sum(len(data) for _, data in waiting[side])
        if whole:
            position = sides[side].put(tuple(parts), len(whole))
            # Each byte of room is used, but what an empty ring has behind it.
            assert (position < 0) == (unread + len(whole) > SIZE)
            if position >= 0:
                waiting[side].append((position, whole))
        for _ in range(min(takes, len(waiting[side]))):
            position, wanted = waiting[side].popleft()
            assert sides[1 - side].take(position, len(wanted)) == wanted


def test_a_little_traffic_stays_at_the_begin_of_the_ring() -> None:
    ours, theirs = both_sides()
    for _ in range(10):
        position = ours.put((b"x" * 100,), 100)
        assert position % SIZE == 0
        theirs.take(position, 100)


def test_both_sides_know_the_ring_by_its_identity_and_it_is_no_other_ring_s() -> None:
    ours, theirs = both_sides()
    another, _ = both_sides()
    assert ours.identity == theirs.identity != another.identity
    assert ours.identity >= 1 << 63


@pytest.mark.parametrize(
    ("position", "count"),
    [
        (0, 101), (99, 10), (101, 10), (SIZE + 100, 10), (2 * SIZE, 10), (100, 0), (100, -1), (100, SIZE + 1),
        (-1, 10), (1 << 63, 10), (100, 1 << 63), (0, 10),
    ],
)  # fmt: skip
def test_bytes_that_nobody_can_have_put_are_refused(position: int, count: int) -> None:
    ours, theirs = both_sides()
    assert ours.put((b"x" * 100,), 100) == 0
    theirs.take(0, 100)
    ours.put((b"y" * 100,), 100)
    with pytest.raises(ValueError, match="on the bus, of a ring of 4096 that was read up to 100"):
        theirs.take(position, count)


@pytest.mark.parametrize("told", [1, 201, 1 << 63, (1 << 64) - 1])
def test_a_side_that_says_nonsense_of_what_it_has_taken_gets_nothing_overwritten(told: int) -> None:
    ours, theirs = both_sides()
    assert ours.put((b"x" * SIZE,), SIZE) == 0
    theirs.take(0, SIZE)
    assert ours.put((b"y" * SIZE,), SIZE) == SIZE
    shared_memory.store(theirs._memory, TAKEN_AT[0], told)
    assert ours.put((b"z",), 1) == -1
    assert theirs.take(SIZE, SIZE) == b"y" * SIZE


def test_the_memory_cannot_be_cut_off() -> None:
    made = SharedRing.make(SIZE)
    assert made is not None
    for size in (0, HEAD_BYTES, 1 << 20):
        with pytest.raises(PermissionError):
            os.ftruncate(made[1], size)
    os.close(made[1])


def memory_of(length: int, size: int, seals: int = SEALS) -> int:
    fd = os.memfd_create("rumq-test", os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, length)
    os.pwrite(fd, b"identity" + size.to_bytes(8, "little"), 0)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
    return fd


@pytest.mark.parametrize(
    ("length", "size", "seals"),
    [
        (HEAD_BYTES + 2 * SIZE, SIZE, 0), (HEAD_BYTES + 2 * SIZE, SIZE, fcntl.F_SEAL_GROW), (HEAD_BYTES, 0, SEALS),
        (HEAD_BYTES + 2 * SIZE, 2 * SIZE, SEALS), (HEAD_BYTES + 2 * SIZE, 0, SEALS), (16, SIZE, SEALS),
        (HEAD_BYTES + 2 * 3000, 3000, SEALS), (HEAD_BYTES + 2 * SIZE, 1 << 63, SEALS),
    ],
)  # fmt: skip
def test_memory_that_is_no_ring_is_not_used(length: int, size: int, seals: int) -> None:
    fd = memory_of(length, size, seals)
    assert SharedRing.accept(fd) is None
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)


def test_what_is_no_memory_is_not_used() -> None:
    fd, other = os.pipe()
    assert SharedRing.accept(fd) is None
    os.close(other)


def test_no_rings_where_memory_has_no_order_or_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    assert SharedRing.make(0) is None

    def refused(*_: object) -> int:
        raise OSError(24, "too many open files")

    with monkeypatch.context() as patch:
        patch.setattr(os, "memfd_create", refused)
        assert SharedRing.make(SIZE) is None
    monkeypatch.setattr(shared_memory, "IS_ORDERED", False)
    assert SharedRing.make(SIZE) is None
    assert SharedRing.accept(memory_of(HEAD_BYTES + 2 * SIZE, SIZE)) is None


@pytest.mark.parametrize("shards", [*range(1, 70), 1000])
def test_all_rings_of_a_node_together_are_bounded(shards: int) -> None:
    each = ring_bytes(shards)
    assert each <= RING_BYTES_MAX and shards * (shards - 1) * each <= NODE_BYTES_MAX
    assert each & (each - 1) == 0
    assert each or shards > 32

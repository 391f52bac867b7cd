"""The bytes of a small chunk that names nothing new are those that the general way makes, compiled and as Python."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commitlog.chunk import HEADER_BYTES, Chunk, encode_header, maybe_header
from commitlog.kernels.rows import lay_out
from tests.kernel_forms import forms

KERNELS = forms("commitlog.kernels.small_chunk")
SALT, LSN, TS, DURABLE, EPOCH, CHAIN, GENERATION = (
    1 << 63 | 5,
    1 << 40 | 9,
    1 << 50 | 3,
    1 << 39,
    7,
    1 << 31 | 1,
    3,
)


def rows_of(topics: list[int], publisher: int = 1) -> bytearray:
    """A row each; the k-th is k µs late."""
    rows = bytearray(32 * len(topics))
    words = memoryview(rows).cast("I")
    for row, topic in enumerate(topics):
        words[8 * row], words[8 * row + 4], words[8 * row + 6] = topic, row, publisher
    return rows


def encode(
    kernel: Any, rows: bytearray, frames: bytes, named: bytes, *, flags: int = 33, align: int = 64,
    ahead: int = 0, before: bytes = b"",
) -> tuple[int, bytearray]:  # fmt: skip
    """before: frames of the chunk that was laid out there last"""
    out = bytearray(20_480)
    kernel.encode(out, rows_of([0]), before, b"\1", b"\1\1", 0, 0, 0, 0, 0, 0, 0, 0, 4096, 0)
    found = kernel.encode(
        out, rows, frames, named, b"\1\1", flags, SALT, LSN, TS, DURABLE, EPOCH, CHAIN, GENERATION, align, ahead
    )
    return found, out


@pytest.mark.parametrize("kernel", KERNELS)
@given(
    topics=st.lists(st.integers(0, 9), min_size=1, max_size=40), frames=st.binary(max_size=5000),
    flags=st.integers(0, 63), align=st.sampled_from([64, 4096]), pieces=st.integers(0, 63),
    before=st.binary(max_size=4000),
)  # fmt: skip
def test_they_are_those_of_the_general_way(
    kernel: Any, topics: list[int], frames: bytes, flags: int, align: int, pieces: int, before: bytes
) -> None:
    rows, ahead = rows_of(topics), 64 * pieces % align
    found, out = encode(kernel, rows, frames, b"\1" * 10, flags=flags, align=align, ahead=ahead, before=before)
    size = HEADER_BYTES + len(rows) + len(frames)
    total = (ahead + size + align - 1) // align * align - ahead
    raw, crc = encode_header(
        1, flags, SALT, LSN, len(topics), rows, frames, b"", total, TS, DURABLE, len(topics) - 1, EPOCH, CHAIN,
        min(topics), max(topics), GENERATION,
    )  # fmt: skip
    assert found == total
    assert [kernel.header_word(out, word) for word in (6, 14, 31)] == [len(topics), len(topics) - 1, crc]
    assert out[:total] == (raw + rows + frames).ljust(total, b"\0")
    assert not any(out[size:]), "only zeros behind it, whatever was there before"
    assert maybe_header(bytes(out[:HEADER_BYTES]), SALT) is not None


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(
    ("rows", "frames", "named"),
    [
        (rows_of([0, 2]), b"x", b"\1\1\0"),
        (rows_of([0, 3]), b"x", b"\1\1\1"),
        (rows_of([0], publisher=2), b"x", b"\1"),
        (rows_of([0]), b"x" * 16_353, b"\1"),
        (bytearray(), b"", b"\1"),
    ],
    ids=["a new topic", "a topic beyond the marks", "a publisher beyond the marks", "much", "nothing"],
)
def test_what_is_new_or_much_is_for_the_general_way(kernel: Any, rows: bytearray, frames: bytes, named: bytes) -> None:
    found, out = encode(kernel, rows, frames, named, before=b"stays")
    assert found == 0 and kernel.header_word(out, 7) == 5 and out[160:165] == b"stays"


ROWS = st.lists(st.tuples(st.integers(0, 9), st.sampled_from([0, 1, 16, 17])), min_size=1, max_size=4)
CHUNKS = st.lists(st.tuples(ROWS, st.binary(max_size=300), st.integers(0, 63), st.integers(0, 9000)), min_size=1)


@pytest.mark.parametrize("kernel", KERNELS)
@given(parts=CHUNKS, before=st.binary(min_size=64, max_size=64))
def test_chunks_that_follow_on_each_other_are_joined_as_the_general_way_does(
    kernel: Any, parts: list[tuple[list[tuple[int, int]], bytes, int, int]], before: bytes
) -> None:
    chunks, lsn, now = [], LSN, TS
    for records, frames, flags, later in parts:
        rows = rows_of([topic for topic, _ in records])
        for row, (_, form) in enumerate(records):
            rows[32 * row + 28] = form
        now += later
        chunks.append(Chunk(lsn, len(records), now, flags, rows, frames))
        lsn += len(records)
    frames_at = sum(len(chunk.rows) for chunk in chunks)
    size = frames_at + sum(len(chunk.frames) for chunk in chunks)
    general = bytearray((HEADER_BYTES + size + 3) // 4 * 4)
    flags, tags = lay_out(chunks, general, HEADER_BYTES + frames_at)
    out = bytearray(before * (size // 64 + 1))
    assert kernel.join(chunks, out, frames_at) == flags and tags == b""
    assert out[:size] == general[HEADER_BYTES : HEADER_BYTES + size]

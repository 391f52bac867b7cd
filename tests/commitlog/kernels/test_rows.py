"""The kernel of the log, compiled and as Python: rows numbered, joined, searched.

docs/reference/log-format.md, "Row"."""

import struct
from array import array
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commitlog.kernels import topics as topics_kernel
from tests.kernel_forms import forms

kernels = pytest.mark.parametrize("kernel", forms("commitlog.kernels.rows"))
U32 = st.integers(0, 2**32 - 1)
FRAMES = st.lists(st.binary(min_size=1, max_size=9), min_size=1, max_size=5)
TOPIC_IDS = st.lists(st.integers(0, 20), min_size=1, max_size=30)


def row(
    topic_id: int, pos: int = 0, offset: int = 0, ts: int = 0, payload: int = 0, pub: int = 0, flags: int = 0
) -> bytes:
    return struct.pack("<IIQIIIHH", topic_id, pos, offset, ts, payload, pub, flags, 0)


def fields(rows: Any) -> list[tuple[int, ...]]:
    return [f[:7] for f in struct.iter_unpack("<IIQIIIHH", bytes(rows))]


@kernels
@given(ids=TOPIC_IDS, begin=st.integers(0, 2**63))
def test_each_row_gets_the_next_offset_of_its_topic(kernel: Any, ids: list[int], begin: int) -> None:
    offsets = array("Q", [begin] * 21)
    rows = bytearray(b"".join(row(i, pos=7, ts=3) for i in ids))
    assert kernel.number_rows(rows, len(ids), offsets) == -1
    seen: dict[int, int] = {}
    for topic_id, (found, pos, offset, ts, *_) in zip(ids, fields(rows), strict=True):
        assert (found, pos, ts) == (topic_id, 7, 3)
        assert offset == begin + seen.get(topic_id, 0)
        seen[topic_id] = seen.get(topic_id, 0) + 1
    assert [offsets[i] - begin for i in range(21)] == [seen.get(i, 0) for i in range(21)]


@kernels
def test_a_row_of_a_topic_that_was_never_added_is_told(kernel: Any) -> None:
    rows = bytearray(row(0) + row(5) + row(0))
    assert kernel.number_rows(rows, 3, array("Q", [0, 0])) == 1


@kernels
@given(
    parts=st.lists(
        st.tuples(FRAMES, st.integers(0, 10**6), st.booleans()),
        min_size=1, max_size=4,
    )
)  # fmt: skip
def test_chunks_that_are_laid_out_as_one_say_the_same(kernel: Any, parts: list[tuple[list[bytes], int, bool]]) -> None:
    chunks, expected, tags = [], [], []
    ts = 10**15
    for frames, later, tagged in parts:
        ts += later
        rows, at = b"", 0
        for number, frame in enumerate(frames):
            rows += row(number, at, number, 0, 1, 2, 2)
            expected.append((number, frame, ts))
            if tagged:
                tags.append((len(expected) - 1, 77))
            at += len(frame)
        packed = b"".join(struct.pack("<II", n, 77) for n in range(len(frames))) if tagged else b""
        chunks.append(SimpleNamespace(rows=rows, frames=b"".join(frames), base_ts=ts, flags=1 | 32, tags=packed))
    count = len(expected)
    size = 128 + 32 * count + sum(len(c.frames) for c in chunks)
    buffer = bytearray((size + 3) // 4 * 4)
    flags, joined = kernel.lay_out(chunks, buffer, 128 + 32 * count)
    assert flags == 1 | 32
    assert list(struct.iter_unpack("<II", joined)) == tags
    rows = fields(buffer[128 : 128 + 32 * count])
    ends = [f[1] for f in rows[1:]] + [size - 128 - 32 * count]
    for (number, frame, when), found, end in zip(expected, rows, ends, strict=True):
        start = 128 + 32 * count + found[1]
        assert found[0] == number and buffer[start : 128 + 32 * count + end] == frame
        assert chunks[0].base_ts + found[3] == when


@kernels
@pytest.mark.parametrize(
    ("flags", "rows", "uniform"),
    [
        ((33, 33), (2, 2), True),
        ((33, 33), (2, 4), False),  # another QoS
        ((33, 33), (2, 18), False),  # MQTT 5
        ((33, 1), (2, 2), False),  # one that is not uniform itself
        ((33, 33), (2, 2 | 64), True),  # an empty payload is sent as it is
    ],
)
def test_chunks_are_uniform_together_if_each_is_and_all_are_alike(
    kernel: Any, flags: tuple[int, int], rows: tuple[int, int], uniform: bool
) -> None:
    chunks = [
        SimpleNamespace(rows=row(0, flags=r), frames=b"f", base_ts=0, flags=f, tags=b"")
        for f, r in zip(flags, rows, strict=True)
    ]
    found, _ = kernel.lay_out(chunks, bytearray(256), 192)
    assert bool(found & 32) is uniform and found & 1


@kernels
@given(ids=TOPIC_IDS)
def test_what_is_seen_first_is_told_once(kernel: Any, ids: list[int]) -> None:
    rows = b"".join(row(i, offset=1000 + n, pub=i + 1) for n, i in enumerate(ids))
    seen = bytearray(32)
    seen[3] = 1
    expected = {i: 1000 + n for n, i in reversed(list(enumerate(ids))) if i != 3}
    assert dict(kernel.first_seen(rows, 0, seen)) == expected
    assert kernel.first_seen(rows, 0, seen) == []
    assert {n for n, _ in kernel.first_seen(rows, 6, bytearray(32))} == {i + 1 for i in ids}
    assert kernel.first_seen(rows, 0, bytearray(0)) == [], "numbers beyond the marks are left out"


@kernels
@given(rows=st.lists(st.tuples(U32, U32), min_size=1, max_size=20))
def test_bounds_and_columns_are_those_of_a_list(kernel: Any, rows: list[tuple[int, int]]) -> None:
    raw = b"".join(row(i, ts=ts) for i, ts in rows)
    ids = [i for i, _ in rows]
    assert kernel.bounds(raw) == (min(ids), max(ids), max(ts for _, ts in rows))
    column, highest = kernel.topic_column(raw)
    assert array("I", column).tolist() == ids and highest == max(ids)


@kernels
@given(
    ids=st.lists(st.integers(0, 9), min_size=1, max_size=16),
    known=st.integers(8, 10),
    begin=st.integers(0, 2**40),
)
def test_a_few_rows_are_indexed_as_many_are(kernel: Any, ids: list[int], known: int, begin: int) -> None:
    rows = bytearray(b"".join(row(i) for i in ids))
    kernel.number_rows(rows, len(ids), array("Q", [begin] * 10))
    found = []
    for few in (True, False):
        seen, first, following = bytearray(known), array("Q", [7] * known), array("Q", [9] * known)
        seen[0] = 1
        column = None
        if few:
            ids_before = bytearray(b"\xff" * 96)
            count = kernel.index_few(rows, seen, first, following, ids_before, 8)
            assert count == (len(ids) if max(ids) < known else -1)
            assert set(ids_before[:32]) == set(ids_before[32 + 4 * max(count, 0) :]) | {255} == {255}
            column = bytes(ids_before[32 : 32 + 4 * count]) if count > 0 else None
        if not few and max(ids) < known:
            column = kernel.topic_column(rows)[0]
            topics_kernel.first_offsets(rows, seen, first)
            kernel.follow(rows, following)
        found.append((column, seen, first, following))
    assert found[0] == found[1]
    many = bytearray(rows * 257)
    assert kernel.index_few(many, bytearray(10), array("Q", [0] * 10), array("Q", [0] * 10), bytearray(4096), 0) == -1


@kernels
@given(times=st.lists(st.integers(0, 50), min_size=1, max_size=20), asked=st.integers(-5, 60))
def test_the_first_row_at_a_time_is_the_first_of_equals(kernel: Any, times: list[int], asked: int) -> None:
    times.sort()
    raw = b"".join(row(0, ts=ts) for ts in times)
    expected = next((n for n, ts in enumerate(times) if ts >= asked), len(times))
    assert kernel.first_at_time(raw, asked) == expected


@kernels
@given(ids=TOPIC_IDS, asked=st.integers(0, 20), begin=st.integers(0, 2**40), more=st.integers(-3, 30))
def test_the_first_of_a_topic_has_that_offset_or_the_next(
    kernel: Any, ids: list[int], asked: int, begin: int, more: int
) -> None:
    offsets = array("Q", [begin] * 21)
    rows = bytearray(b"".join(row(i) for i in ids))
    kernel.number_rows(rows, len(ids), offsets)
    wanted = max(0, begin + more)
    expected = next((n for n, f in enumerate(fields(rows)) if f[0] == asked and f[2] >= wanted), -1)
    assert kernel.first_of_topic(rows, asked, wanted) == expected
    following = array("Q", bytes(8 * 21))
    kernel.follow(rows, following)
    assert list(following) == [offsets[i] if i in ids else 0 for i in range(21)]
    kernel.follow(rows, array("Q", [0]))  # topics beyond the array are left out


@kernels
@given(ids=TOPIC_IDS, first=st.integers(0, 1000))
def test_rows_placed_by_topic_are_a_stable_sort(kernel: Any, ids: list[int], first: int) -> None:
    column = array("I", ids).tobytes()
    counts = array("I", bytes(4 * 21))
    kernel.count_topics(column, counts)
    assert counts.tolist() == [ids.count(i) for i in range(21)]
    starts = array("I", [sum(counts[:i]) for i in range(21)])
    out = array("I", bytes(4 * len(ids)))
    kernel.place_rows(column, first, starts, out)
    assert out.tolist() == [first + n for n, _ in sorted(enumerate(ids), key=lambda item: item[1])]


@kernels
@pytest.mark.parametrize(
    ("rows", "frames_len", "fits"),
    [
        ([(0, 2), (5, 5)], 10, True),
        ([(0, 5), (5, 5)], 10, True),  # a payload of no bytes
        ([(0, 6), (5, 5)], 10, False),  # a payload that begins in the next frame
        ([(1, 2)], 10, False),  # bytes before the first frame
        ([(0, 2), (0, 2)], 10, False),  # a frame of no bytes
        ([(0, 2), (12, 2)], 10, False),
        ([(0, 2), (2**32 - 1, 2)], 10, False),
        ([(0, 2**32 - 1)], 10, False),
        ([(0, 0)], 0, False),
    ],
)
def test_frames_follow_one_another_inside_the_blob(
    kernel: Any, rows: list[tuple[int, int]], frames_len: int, fits: bool
) -> None:
    raw = b"".join(row(0, pos, payload=payload) for pos, payload in rows)
    assert kernel.frames_in_order(raw, frames_len) is fits

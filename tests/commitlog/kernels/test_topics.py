"""What a segment tells about its topics, compiled and as plain Python, against dictionaries."""

import struct
from array import array
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commitlog.chunk import decode_aux, encode_packed
from commitlog.names.topic_table import PackedTopicTable, TopicRows
from tests.kernel_forms import forms

KERNEL = pytest.mark.parametrize("kernel", forms("commitlog.kernels.topics"))
NAMES = [b"", b"a", b"plant/7", b"x" * 300, "höhe".encode(), b"z"]
ROWS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2**64 - 1)), min_size=1, max_size=20)


def rows_of(rows: list[tuple[int, int]]) -> bytearray:
    return bytearray(b"".join(struct.pack("<IIQ16x", topic, 0, offset) for topic, offset in rows))


def firsts(rows: list[tuple[int, int]]) -> dict[int, int]:
    found: dict[int, int] = {}
    for topic, offset in rows:
        found.setdefault(topic, offset)
    return found


@KERNEL
@given(rows=ROWS, known=st.sets(st.integers(0, 5)), items_max=st.integers(1, 4))
def test_new_topics_are_told_once_in_order(
    kernel: ModuleType, rows: list[tuple[int, int]], known: set[int], items_max: int
) -> None:
    seen = bytearray(topic in known for topic in range(6))
    pieces = kernel.told(rows_of(rows), seen, NAMES, items_max)
    expected = [(topic, offset, NAMES[topic]) for topic, offset in firsts(rows).items() if topic not in known]
    assert all(0 < count <= items_max for count, _ in pieces)
    assert decode_aux(encode_packed(pieces, [], b"")).topics == expected
    assert seen == bytearray(topic in known or topic in firsts(rows) for topic in range(6))
    assert kernel.told(rows_of(rows), seen, NAMES, items_max) == []


@KERNEL
@given(rows=ROWS, offsets=st.lists(st.integers(0, 2**64 - 1), min_size=6, max_size=6))
def test_a_table_says_of_each_topic_where_its_rows_are(
    kernel: ModuleType, rows: list[tuple[int, int]], offsets: list[int]
) -> None:
    seen, first = bytearray(6), array("Q", bytes(48))
    kernel.first_offsets(rows_of(rows), seen, first)
    counts = array("I", [sum(topic == one for one, _ in rows) for topic in range(6)])
    following, starts = array("Q", offsets), array("I", bytes(24))
    table = PackedTopicTable(kernel.table(seen, counts, first, following, starts))
    expected, at = {}, 0
    for topic in sorted(firsts(rows)):
        assert starts[topic] == at
        expected[topic] = TopicRows(counts[topic], firsts(rows)[topic], offsets[topic], at)
        at += counts[topic]
    assert table == expected and len(table) == len(expected) and table.highest == max(expected)
    assert [table.get(topic) for topic in range(7)] == [expected.get(topic) for topic in range(7)]
    assert kernel.in_order(table.packed)
    assert not kernel.in_order(table.packed + table.packed)
    names = b"".join(struct.pack("<IH", t, len(NAMES[t])) + NAMES[t] for t in expected)
    halves = [kernel.names_of(table.packed, *part, NAMES) for part in ((0, 1), (1, len(table)))]
    assert b"".join(halves) == names
    known = array("Q", [2**63] * 6)
    kernel.raise_offsets(table.packed, known)
    assert list(known) == [max(2**63, offsets[topic]) if topic in expected else 2**63 for topic in range(6)]


@KERNEL
def test_a_snapshot_s_topics_are_packed_in_pieces(kernel: ModuleType) -> None:
    offsets = array("Q", [7, 2**64 - 1, 0, 1, 2, 3])
    packed = kernel.offsets_and_names(offsets, NAMES, 0, 2) + kernel.offsets_and_names(offsets, NAMES, 2, 6)
    assert packed == b"".join(
        struct.pack("<QH", offset, len(name)) + name for offset, name in zip(offsets, NAMES, strict=True)
    )

"""What is written is what is read: headers, aux, manifest, index, snapshot. docs/reference/log-format.md."""

from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commitlog.chunk import (
    DATA,
    EPOCH_MAX,
    HEADER_BYTES,
    NUMBER_MAX,
    Header,
    decode_aux,
    encode_aux,
    encode_header,
    maybe_header,
    padded,
    split_body,
)
from commitlog.errors import Damaged
from commitlog.format.manifest import bad_lines, decode_edits, encode_edit
from commitlog.format.segment import (
    ChunkPosition,
    SegmentHeader,
    decode_segment_header,
    encode_segment_header,
)
from commitlog.index.dictionary import DictionarySnapshot, decode_snapshot, snapshot_pieces
from commitlog.index.index import decode_index, encode_index
from commitlog.index.index_builder import NUMBERS_MAX, Index
from commitlog.names.topic_table import TopicRows

U32, U64 = st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1)
U62 = st.integers(0, NUMBER_MAX - 1)  # lsns and times
GIVEN = st.integers(0, NUMBERS_MAX - 1)  # numbers of topics and publishers
NAMES = st.binary(max_size=40)


@given(
    lsn=U62,
    ts=U62,
    durable=U62,
    late=U32,
    epoch=st.integers(0, EPOCH_MAX - 1),
    chain=U32,
    salt=U64,
    low=U32,
    high=U32,
    frames=NAMES,
    aux=NAMES,
)
def test_a_chunk_header_says_what_it_was_told(
    lsn: int, ts: int, durable: int, late: int, epoch: int, chain: int, salt: int, low: int, high: int, frames: bytes,
    aux: bytes,
) -> None:  # fmt: skip
    rows = bytes(64)
    total = padded(HEADER_BYTES + 64 + len(frames) + len(aux), 64)
    raw, crc = encode_header(
        DATA, 5, salt, lsn, 2, rows, frames, aux, total, ts, durable, late, epoch, chain, low, high, 1
    )
    found = maybe_header(raw, salt)
    assert isinstance(found, Header)
    said = (
        found.base_lsn,
        found.base_ts,
        found.durable_lsn,
        found.max_ts_delta,
        found.epoch,
        found.chain,
        found.crc,
    )
    assert said == (lsn, ts, durable, late, epoch, chain, crc)
    assert (found.kind, found.flags, found.count, found.total_len) == (DATA, 5, 2, total)
    assert [bytes(part) for part in split_body(found, rows + frames + aux + b"padding")] == [
        rows,
        frames,
        aux,
    ]
    assert maybe_header(raw, salt ^ 1) is None, "a chunk of another segment"
    assert maybe_header(raw[:-1], salt) is None


def test_a_header_with_any_bit_changed_is_none() -> None:
    raw, _ = encode_header(DATA, 0, 9, 0, 1, bytes(32), b"f", b"", 192, 0, 0, 0, 1, 0, 0, 0, 1)
    for at in range(128):
        for bit in range(8):
            changed = bytearray(raw)
            changed[at] ^= 1 << bit
            assert maybe_header(bytes(changed), 9) is None


def test_a_header_whose_body_does_not_fit_its_length_is_none() -> None:
    for total in (128, 160, 191, 193):
        raw, _ = encode_header(DATA, 0, 9, 0, 1, bytes(32), b"f", b"", total, 0, 0, 0, 1, 0, 0, 0, 1)
        assert maybe_header(raw, 9) is None


@given(
    topics=st.lists(st.tuples(U32, U64, NAMES), max_size=8), publishers=st.lists(st.tuples(U32, NAMES), max_size=8),
    tags=st.lists(st.tuples(U32, U32), max_size=8),
)  # fmt: skip
def test_aux_says_what_it_was_told(
    topics: list[tuple[int, int, bytes]], publishers: list[tuple[int, bytes]], tags: list[tuple[int, int]]
) -> None:
    packed = b"".join(n.to_bytes(4, "little") for tag in tags for n in tag)
    raw = encode_aux(topics, publishers, packed)
    assert decode_aux(raw) == (topics, publishers, packed)
    assert decode_aux(memoryview(b"\x63\0\1\0\3\0\0\0abc" + raw)) == (topics, publishers, packed), "unknown kinds"


def test_aux_holds_more_items_than_its_count_can_say() -> None:
    topics = [(n, 0, b"t") for n in range(70_000)]
    assert decode_aux(encode_aux(topics, [], b"")).topics == topics


@given(raw=st.binary(max_size=80))
def test_no_bytes_make_aux_fail(raw: bytes) -> None:
    decode_aux(raw)


@given(name=st.text(max_size=16), lsn=U62, salt=U64, epoch=st.integers(0, EPOCH_MAX - 1))
def test_a_segment_header_says_what_it_was_told(name: str, lsn: int, salt: int, epoch: int) -> None:
    header = SegmentHeader(3, 4, name, b"u" * 16, salt, lsn, 123, epoch, b"b" * 16)
    raw = encode_segment_header(header)
    assert len(raw) == 4096 and decode_segment_header(raw, "s") == header
    with pytest.raises(Damaged):
        decode_segment_header(raw[:2000] + b"\1" + raw[2001:], "s")


def test_a_torn_or_damaged_line_of_the_manifest_hides_no_other() -> None:
    edits = [{"edit": "first", "lsn": n} for n in range(3)]
    raw = b"".join(map(encode_edit, edits))
    for at in range(len(raw)):
        damaged = raw[:at] + bytes([raw[at] ^ 4]) + raw[at + 1 :]
        found = decode_edits(damaged)
        assert len(found) >= 1 and all(edit in edits for edit in found)
        assert decode_edits(raw[:at]) == edits[: raw[:at].count(b"\n")]
    assert bad_lines(raw) == []
    assert bad_lines(raw.replace(b'"lsn":1', b'"lsn":7')) == [2]
    assert decode_edits(encode_edit({"edit": "later version"}) + encode_edit({"edit": "seal"})) == []


@given(
    places=st.lists(st.tuples(U62, U64, U62, U32, U32, U32, U32), max_size=5),
    topics=st.dictionaries(GIVEN, st.tuples(U32, U64, U64, U32), max_size=5),
    names=st.dictionaries(GIVEN, NAMES, max_size=5), rows=st.lists(U32, max_size=9),
)  # fmt: skip
def test_an_index_says_what_it_was_told(
    places: list[tuple[int, ...]],
    topics: dict[int, tuple[int, ...]],
    names: dict[int, bytes],
    rows: list[int],
) -> None:
    index = Index()
    index.places = [ChunkPosition(*place) for place in places]
    index.topics = {number: TopicRows(*fields) for number, fields in topics.items()}
    index.names = index.publishers = names
    index.rows = array("I", rows)
    raw = encode_index(index, 77, 8192)
    found = decode_index(raw, "i", 77, 8192)
    for part in ("places", "topics", "names", "publishers", "rows"):
        assert getattr(found, part) == getattr(index, part)
    for end, stop in ((78, 8192), (77, 8193)):
        with pytest.raises(Damaged, match="another end or stop"):
            decode_index(raw, "i", end, stop)


@given(
    topics=st.lists(st.tuples(NAMES, U64), max_size=6),
    publishers=st.dictionaries(st.integers(1, 9), NAMES.filter(bool), max_size=6),
    lsn=U62,
)
def test_a_snapshot_says_what_it_was_told(
    topics: list[tuple[bytes, int]], publishers: dict[int, bytes], lsn: int
) -> None:
    snapshot = DictionarySnapshot(lsn, [n for n, _ in topics], array("Q", [o for _, o in topics]), publishers, 10)
    raw = b"".join(snapshot_pieces(snapshot))
    assert decode_snapshot(raw) == snapshot
    for at in range(len(raw)):
        assert decode_snapshot(raw[:at]) is None
        assert decode_snapshot(raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :]) is None

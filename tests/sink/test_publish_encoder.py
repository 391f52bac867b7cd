"""Record batches as PUBLISH packets: what a decoder says of them is what the rows said."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="pyarrow is not installed (pip install 'rumq[spark]')")

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from rumq.mqtt.decode import decode
from rumq.mqtt.frames import FrameReader
from rumq.mqtt.packets import Publish
from rumq.sink.publish_encoder import PublishEncoder, encode
from rumq.table.errors import BadRow

PAIR = pa.struct([("key", pa.string()), ("value", pa.string())])
SCHEMA = pa.schema(
    {
        "topic": pa.string(), "payload": pa.binary(), "qos": pa.int8(), "retain": pa.bool_(),
        "properties": pa.list_(PAIR), "content_type": pa.string(), "response_topic": pa.string(),
        "correlation_data": pa.binary(), "message_expiry": pa.int64(), "payload_format": pa.int8(),
    }
)  # fmt: skip
PROPERTIES = {
    "content_type": "content_type", "response_topic": "response_topic", "correlation_data": "correlation_data",
    "message_expiry": "message_expiry_interval", "payload_format": "payload_format_indicator",
}  # fmt: skip


def packets(frames: PublishEncoder, first: int = 0, end: int | None = None) -> list[Publish]:
    reader = FrameReader(version=5)
    reader.receive(frames.bytes_of(first, len(frames) if end is None else end))
    found = [decode(head, body, 5) for head, body in reader.frames()]
    assert not reader.buffered_bytes
    return found  # type: ignore[return-value]


def stamped(frames: PublishEncoder, first_id: int = 1) -> PublishEncoder:
    frames.stamp(0, len(frames), np.arange(first_id, first_id + int((frames.qos > 0).sum())))
    return frames


texts = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=20)
names = st.text("aé/", min_size=1, max_size=8)
maybe = st.none
rows_ = st.fixed_dictionaries(
    {
        "topic": names,
        "payload": st.one_of(maybe(), st.binary(max_size=300), st.integers(16_380, 16_390).map(bytes)),
        "qos": st.one_of(maybe(), st.integers(0, 2)),
        "retain": st.one_of(maybe(), st.booleans()),
        "properties": st.one_of(maybe(), st.lists(st.fixed_dictionaries({"key": texts, "value": texts}), max_size=3)),
        "content_type": st.one_of(maybe(), texts),
        "response_topic": st.one_of(maybe(), names),
        "correlation_data": st.one_of(maybe(), st.binary(max_size=9)),
        "message_expiry": st.one_of(maybe(), st.integers(0, 2**32 - 1)),
        "payload_format": st.one_of(maybe(), st.integers(0, 1)),
    }
)


@given(st.lists(rows_, max_size=8), st.integers(0, 3), st.booleans())
def test_a_decoder_finds_what_the_rows_say(rows: list[dict[str, Any]], skipped: int, retain: bool) -> None:
    """Also of a slice, whose columns begin somewhere in their buffers."""
    batch = pa.RecordBatch.from_pylist(rows, SCHEMA).slice(skipped)
    found = packets(stamped(encode(batch, qos=1, retain=retain, origin="q/0/1/", first_row=7)))
    packet_id = 0
    for n, (row, packet) in enumerate(zip(rows[skipped:], found, strict=True)):
        qos = 1 if row["qos"] is None else row["qos"]
        packet_id += qos > 0
        expected: dict[str, Any] = {name: row[column] for column, name in PROPERTIES.items() if row[column] is not None}
        pairs = [(pair["key"], pair["value"]) for pair in row["properties"] or ()]
        expected["user_properties"] = [*pairs, ("rumq-origin", f"q/0/1/{7 + n}")]
        assert packet == Publish(
            row["topic"], row["payload"] or b"", qos, retain if row["retain"] is None else row["retain"], False,
            packet_id if qos else None, expected,
        )  # fmt: skip


def test_text_maps_and_absent_columns() -> None:
    kinds = pa.schema({"payload": pa.string(), "properties": pa.map_(pa.string(), pa.string())})
    rows = [{"payload": "ü", "properties": [("k", "v")]}, {"payload": None, "properties": None}]
    found = packets(encode(pa.RecordBatch.from_pylist(rows, kinds), topic="a", qos=0))
    assert found == [Publish("a", "ü".encode(), properties={"user_properties": [("k", "v")]}), Publish("a", b"")]


def test_a_topic_of_a_row_goes_before_the_option() -> None:
    batch = pa.RecordBatch.from_pylist([{"topic": "row"}, {"topic": None}])
    assert [packet.topic for packet in packets(encode(batch, topic="option", qos=0))] == ["row", "option"]


def test_a_digest_is_of_the_rows_however_they_come() -> None:
    rows = [{"topic": "t", "payload": b"%d" % n} for n in range(9)]
    batch = pa.RecordBatch.from_pylist(rows)
    whole = encode(batch, qos=2)
    digest = 0
    for at in (0, 2, 7):
        part = encode(batch.slice(at, {0: 2, 2: 5, 7: 2}[at]), qos=2)
        digest = part.digest(0, len(part), digest)
    assert digest == whole.digest(0, 9, 0) == whole.behind(4).digest(0, 5, whole.digest(0, 4, 0))
    other = encode(pa.RecordBatch.from_pylist([*rows[:8], {"topic": "t", "payload": b"9"}]), qos=2)
    assert other.digest(0, 9, 0) != digest


def test_ids_are_written_into_some_rows_and_dup_with_them() -> None:
    frames = encode(pa.RecordBatch.from_pylist([{"topic": "t", "qos": n % 3} for n in range(6)]))
    frames.stamp(1, 5, np.array([7, 65_535, 9]), dup=True)
    assert [(p.packet_id, p.dup) for p in packets(frames, 1, 5)] == [
        (7, True), (65_535, True), (None, False), (9, True)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("row", "says"),
    [({"topic": None}, "expected a topic"), ({"topic": "a/#"}, "has a wildcard"),
     ({"topic": "a", "qos": 3}, "expected 0, 1 or 2"), ({"topic": "a", "payload_format": 2}, "0 to 1"),
     ({"topic": "a", "message_expiry": -1}, "0 to 4294967295"), ({"topic": "a", "content_type": "a\0"}, r"U\+0000"),
     ({"topic": "a", "content_type": "a" * 65_536}, "65535 bytes"), ({"topic": "a", "response_topic": "+"}, "wildcard"),
     ({"topic": "a", "properties": [{"key": "k", "value": None}]}, "a value that is null"),
     ({"topic": "a", "payload": bytes(95)}, "payload = '103 bytes' .* 100 bytes, the broker's maximum packet size")],
)  # fmt: skip
def test_a_row_that_cannot_be_published_is_named(row: dict[str, Any], says: str) -> None:
    most = 100 if "payload" in row else 1 << 28
    with pytest.raises(BadRow, match=says):
        encode(
            pa.RecordBatch.from_pylist([{"topic": "b"}, row], SCHEMA),
            frame_bytes_max=most,
        )

"""Frames as columns hold what the decoder of one frame finds in each."""

import pytest

pytest.importorskip("pyarrow", reason="pyarrow is not installed (pip install 'rumq[spark]')")

from hypothesis import given, settings
from hypothesis import strategies as st

from commitlog import Chunk
from rumq.mqtt.encode import encode
from rumq.mqtt.packets import Publish
from rumq.table.arrow.columns import Block, Columns, RangeTopics

WORDS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=5)
OPTIONAL = {
    "payload_format_indicator": st.integers(0, 1),
    "message_expiry_interval": st.integers(0, 2**32 - 1),
    "content_type": WORDS | st.just("x" * 200),
    "response_topic": st.just("answers/here"),
    "correlation_data": st.binary(max_size=4),
    "user_properties": st.lists(st.tuples(st.sampled_from(["a", "b", "ü"]), WORDS), min_size=1, max_size=4),
}
MESSAGES = st.builds(
    lambda topic, payload, qos, version, properties: (
        Publish(
            topic,
            payload,
            qos,
            False,
            packet_id=7 if qos else None,
            properties=properties if version == 5 else {},
        ),
        version,
    ),
    st.sampled_from(["a", "a/b", "ü" * 70]),
    st.binary(max_size=200),
    st.integers(0, 2),
    st.sampled_from([4, 5]),
    st.fixed_dictionaries({}, optional=OPTIONAL),
)


def chunk_of(messages: list[tuple[Publish, int]], base_lsn: int, names: dict[str, int]) -> Chunk:
    rows, frames = b"", b""
    for n, (message, version) in enumerate(messages):
        frame = encode(message, version)
        flags = message.qos | (16 if version == 5 else 0) | (32 if message.properties else 0)
        number = names.setdefault(message.topic, 3 * len(names))
        for value, size in (
            (number, 4), (len(frames), 4), (n, 8), (n, 4), (len(frame) - len(message.payload), 4), (0, 4), (flags, 2),
            (0, 2),
        ):  # fmt: skip
            rows += value.to_bytes(size, "little")
        frames += frame
    return Chunk(base_lsn, len(messages), 1000, 0, rows, frames)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.lists(MESSAGES, min_size=1, max_size=8), min_size=1, max_size=3), st.sampled_from(["#", "a"]))
def test_columns_are_what_each_frame_says(chunks: list[list[tuple[Publish, int]]], wanted: str) -> None:
    names: dict[str, int] = {}
    base, made = 50, []
    for messages in chunks:
        made.append(chunk_of(messages, base, names))
        base += len(messages)
    topics = RangeTopics(None if wanted == "#" else lambda topic: topic == wanted)
    columns = Columns(topics.learn(Block(made)), "main/g1/p0", topics, {0: b""})
    numbered = [(50 + n, m) for n, (m, _) in enumerate(m for messages in chunks for m in messages)]
    expected = [(lsn, m) for lsn, m in numbered if wanted in ("#", m.topic)]
    assert columns.array("lsn").to_pylist() == [lsn for lsn, _ in expected]
    assert columns.array("topic").to_pylist() == [m.topic for _, m in expected]
    assert columns.array("payload").to_pylist() == [m.payload for _, m in expected]
    pairs = [m.properties.get("user_properties", []) for _, m in expected]
    assert [[(p["key"], p["value"]) for p in row] for row in columns.array("properties").to_pylist()] == pairs
    assert [dict(row) for row in columns.array("properties_map").to_pylist()] == [dict(row) for row in pairs]
    for name, word in (
        ("content_type", "content_type"),
        ("response_topic", "response_topic"),
        ("correlation_data", "correlation_data"),
        ("message_expiry", "message_expiry_interval"),
        ("payload_format", "payload_format_indicator"),
    ):
        assert columns.array(name).to_pylist() == [m.properties.get(word) for _, m in expected], name
